#pragma once
#include <sys/types.h>

/// Finds room on the disk for the first `size` bytes of a file, which keeps its content and size: 0, or an error number. Nothing happens
/// where the system has no such thing. Linux's fallocate, which Swift's import of the C library does not have.
int mill_file_reserve(int descriptor, off_t size);

/// Says that bytes of a file will be read soon; a hint that may be ignored. Returns before they are there.
void mill_file_prefetch(int descriptor, off_t offset, off_t count);

/// A second descriptor of an open file, for writes of whole blocks that go past the page cache: Linux's O_DIRECT.
/// -1 where the system or the file's file system has no such thing.
int mill_file_open_direct(int descriptor);
