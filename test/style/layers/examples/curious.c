#include "worker/worker.h"
#include <filch/public.h>
#include <worker/worker.h>
