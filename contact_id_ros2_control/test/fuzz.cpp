// Good messages with damage, and states with damage: whatever comes in, torques within the limits go out.
//
//   fuzz COUNT SEED     exit code 1 and a line where they do not
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "contact_id_ros2_control/robot_side.hpp"

using contact_id_ros2_control::hash_of;
using contact_id_ros2_control::Kind;
using contact_id_ros2_control::Refusal;
using contact_id_ros2_control::RobotSide;
using contact_id_ros2_control::Settings;

namespace
{

std::mt19937_64 engine;

double uniform(double low, double high)
{
  return std::uniform_real_distribution<double>(low, high)(engine);
}

std::size_t below(std::size_t end) {return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine);}

double odd_number()
{
  switch (below(8)) {
    case 0: return std::numeric_limits<double>::quiet_NaN();
    case 1: return std::numeric_limits<double>::infinity();
    case 2: return -std::numeric_limits<double>::infinity();
    case 3: return std::numeric_limits<double>::denorm_min();
    case 4: return -1.0;
    case 5: return 1e300 * uniform(-1.0, 1.0);
    case 6: return static_cast<double>(below(70));
    default: {
        const std::uint64_t bits = engine();
        double value;
        std::memcpy(&value, &bits, sizeof(value));
        return value;
      }
  }
}

Settings some_settings(bool floats)
{
  Settings settings;
  settings.joints = {"a", "b", "c", "d", "e"};
  settings.floating_base = floats;
  settings.position_gain.assign(5, 10.0);
  settings.velocity_gain.assign(5, 0.2);
  settings.damping.assign(5, 0.5);
  settings.effort_limit = {1.0, 2.0, 3.0, 40.0, 1e9};
  settings.effort_rate_limit = {100.0, 1e3, 1e9, std::numeric_limits<double>::infinity(), 0.0};
  settings.turns = {false, true, false, true, false};
  settings.ramp_s = 0.01;
  return settings;
}

std::vector<double> message_of(const Settings & settings, double seconds)
{
  const std::size_t n = settings.joints.size(), nv = n + (settings.floating_base ? 6 : 0);
  const int kind = 1 + static_cast<int>(below(50) == 0 ? 2 : below(2));
  const std::size_t points = 1 + below(12);
  std::vector<double> out = {1.0, static_cast<double>(hash_of(settings.joints)),
    static_cast<double>(kind), static_cast<double>(below(3)), seconds, 5e8, static_cast<double>(n),
    kind == 1 ? static_cast<double>(points) : kind == 2 ? static_cast<double>(nv) : 0.0};
  if (kind == 1) {
    for (std::size_t k = 0; k < points; ++k) {out.push_back(0.01 * static_cast<double>(k));}
    for (std::size_t k = 0; k < points * 4 * n; ++k) {out.push_back(uniform(-3.0, 3.0));}
  } else if (kind == 2) {
    if (settings.floating_base) {
      for (double value : {0.1, 0.2, 0.3, 0.0, 0.6, 0.0, 0.8, 0.1, 0.0, 0.0, 0.0, 0.2, 0.0}) {
        out.push_back(value);
      }
    }
    for (std::size_t k = 0; k < 3 * n + 2 * n * nv; ++k) {out.push_back(uniform(-3.0, 3.0));}
  }
  return out;
}

}  // namespace

int main(int count_of_arguments, char ** arguments)
{
  const long count = count_of_arguments > 1 ? std::atol(arguments[1]) : 10000;
  engine.seed(count_of_arguments > 2 ? static_cast<std::uint64_t>(std::atol(arguments[2])) : 1);
  long good = 0, followed = 0;
  for (const bool floats : {false, true}) {
    const Settings settings = some_settings(floats);
    RobotSide side(settings);
    std::int64_t now_ns = 5000000000;
    for (long k = 0; k < count / 2; ++k) {
      std::vector<double> message = message_of(settings, static_cast<double>(now_ns / 1000000000));
      for (std::size_t times = below(3); times > 0 && !message.empty(); --times) {
        if (below(3) == 0) {
          message.resize(below(2 * message.size()), odd_number());
        } else {
          message[below(below(2) == 0 ? std::min<std::size_t>(message.size(), 8) : message.size())] =
            odd_number();
        }
      }
      good += side.take(message.empty() ? nullptr : message.data(), message.size()) == Refusal::kGood;
      double q[5], v[5], base[13], out[5];
      for (double & value : q) {value = below(100) == 0 ? odd_number() : uniform(-3.0, 3.0);}
      for (double & value : v) {value = below(100) == 0 ? odd_number() : uniform(-9.0, 9.0);}
      for (double & value : base) {value = below(200) == 0 ? odd_number() : 0.0;}
      base[6] = 1.0;
      for (int periods = 1 + static_cast<int>(below(3)); periods > 0; --periods) {
        now_ns += 1000000;
        const double dt = below(200) == 0 ? odd_number() : below(300) == 0 ? 0.1 : 0.001;
        side.update(now_ns, dt, q, v, below(50) == 0 ? nullptr : base, out);
        for (std::size_t j = 0; j < 5; ++j) {
          if (!(std::abs(out[j]) <= settings.effort_limit[j])) {
            std::printf("torque %zu is %g in message %ld\n", j, out[j], k);
            return 1;
          }
        }
        followed += side.state() == contact_id_ros2_control::State::kFollowing;
      }
      if (below(20) == 0) {side.reset();}
      if (below(500) == 0) {side.stop();}
      if (below(1000) == 0) {side.activate();}
    }
  }
  std::printf("%ld messages, %ld good, %ld periods led\n", count, good, followed);
  return good > 0 && followed > 0 ? 0 : 1;
}
