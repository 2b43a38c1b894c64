// The law with a C interface, for the test that compares it with Python's.
#include "contact_id_ros2_control/robot_side.hpp"

namespace ours = contact_id_ros2_control;

extern "C" {

// names: each ended by a zero; rows (5, joints): K, D, damping, limits of effort and of its rate.
ours::RobotSide * robot_side_new(
  const char * names, int joints, int floating_base, const double * rows, const unsigned char * turns,
  double timeout_s, double ramp_s)
{
  ours::Settings settings;
  const std::size_t n = static_cast<std::size_t>(joints);
  for (std::size_t j = 0; j < n; ++j) {
    settings.joints.emplace_back(names);
    names += settings.joints.back().size() + 1;
  }
  settings.floating_base = floating_base != 0;
  std::size_t row = 0;
  for (auto * part : {&settings.position_gain, &settings.velocity_gain, &settings.damping,
      &settings.effort_limit, &settings.effort_rate_limit})
  {
    part->assign(rows + row * n, rows + (row + 1) * n);
    ++row;
  }
  settings.turns.assign(turns, turns + n);
  settings.timeout_s = timeout_s;
  settings.ramp_s = ramp_s;
  try {
    return new ours::RobotSide(settings);
  } catch (const std::invalid_argument &) {
    return nullptr;
  }
}

void robot_side_delete(ours::RobotSide * side) {delete side;}

int robot_side_take(ours::RobotSide * side, const double * data, unsigned long size)
{
  return static_cast<int>(side->take(data, size));
}

int robot_side_update(
  ours::RobotSide * side, long long now_ns, double dt_s, const double * q, const double * v,
  const double * base, double * out)
{
  side->update(now_ns, dt_s, q, v, base, out);
  return static_cast<int>(side->state());
}

void robot_side_stop(ours::RobotSide * side) {side->stop();}
void robot_side_reset(ours::RobotSide * side) {side->reset();}
void robot_side_activate(ours::RobotSide * side, const double * efforts) {side->activate(efforts);}

}  // extern "C"
