#include "worker/worker.h"
