#include "../bench.h"
#include "../../src/base/base.h"
#include "bench.h"
#include <vector>
