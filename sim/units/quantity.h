// The quantities of the public headers, which the simulator computes in too.
#pragma once

#include "ridgeline/quantity.h"
