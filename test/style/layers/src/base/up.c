#include "base.h"
#include "base/base.h"
#include "worker/worker.h"
#include "../join/join.h"
