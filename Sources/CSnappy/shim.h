#pragma once
#include <snappy-c.h>
