#pragma once
#include <sys/types.h>

/// Finds room on the disk for the first `size` bytes of a file, which keeps its content and size: 0, or an error number. Nothing happens
/// where the system has no such thing. Linux's fallocate, which Swift's import of the C library does not have.
int mill_file_reserve(int descriptor, off_t size);
