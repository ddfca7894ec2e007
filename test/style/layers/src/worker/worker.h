#include "base/base.h"
#include "unknown/unknown.h"
#include <filch/public.h>
#include <join/join.h>
#include <join/system.h>
