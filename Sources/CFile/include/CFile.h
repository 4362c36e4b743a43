#pragma once
#include <sys/types.h>

/// Asks for room on the disk for the first `size` bytes of a file, which keeps its content and size; a hint that may be ignored.
/// Linux's fallocate, which Swift's import of the C library does not have.
void mill_file_reserve(int descriptor, off_t size);
