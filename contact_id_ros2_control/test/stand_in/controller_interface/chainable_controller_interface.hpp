#include "../ros.hpp"
