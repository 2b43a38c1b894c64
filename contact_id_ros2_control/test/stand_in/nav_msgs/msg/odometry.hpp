#include "../../ros.hpp"
