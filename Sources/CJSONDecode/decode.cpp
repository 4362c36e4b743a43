// Filled by the first change.
