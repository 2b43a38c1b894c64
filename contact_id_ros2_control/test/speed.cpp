// How long update takes, and what it allocates: 12 joints, a floating base, the whole gain.
//
//   speed COUNT     exit code 1 where anything was allocated
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "contact_id_ros2_control/robot_side.hpp"

namespace
{
std::atomic<long> allocations{0};
}

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * place = std::malloc(size)) {return place;}
  throw std::bad_alloc();
}
void operator delete(void * place) noexcept {std::free(place);}
void operator delete(void * place, std::size_t) noexcept {std::free(place);}

int main(int count_of_arguments, char ** arguments)
{
  namespace ours = contact_id_ros2_control;
  const long count = count_of_arguments > 1 ? std::atol(arguments[1]) : 100000;
  ours::Settings settings;
  for (int j = 0; j < 12; ++j) {settings.joints.push_back("joint_" + std::to_string(j));}
  settings.floating_base = true;
  for (auto * row : {&settings.position_gain, &settings.velocity_gain, &settings.damping,
      &settings.effort_limit, &settings.effort_rate_limit})
  {
    row->assign(12, 5.0);
  }
  settings.turns.assign(12, false);
  ours::RobotSide side(settings);
  std::vector<double> feedback = {1.0, static_cast<double>(ours::hash_of(settings.joints)), 2.0, 0.0,
    1.0, 0.0, 12.0, 18.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  feedback.resize(8 + 13 + 36 + 12 * 36, 0.1);
  std::vector<double> trajectory = {1.0, feedback[1], 1.0, 0.0, 1.0, 0.0, 12.0, 12.0};
  for (int k = 0; k < 12; ++k) {trajectory.push_back(0.01 * k);}
  trajectory.resize(8 + 12 + 12 * 48, 0.1);
  double q[12] = {0.2}, v[12] = {0.1}, base[13] = {0.01, 0.02, 0.29, 0.0, 0.6, 0.0, 0.8}, out[12];
  int code = 0;
  for (const auto * message : {&feedback, &trajectory}) {
    const long before = allocations;
    double longest = 0.0, whole = 0.0, sum = 0.0;
    for (long k = 0; k < count; ++k) {
      if (side.take(message->data(), message->size()) != ours::Refusal::kGood) {return 2;}
      const auto begin = std::chrono::steady_clock::now();
      side.update(1000000000 + 1000 * (k % 100000), 1e-3, q, v, base, out);
      const double took =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
      whole += took;
      longest = std::max(longest, took);
      sum += out[k % 12];
    }
    const long made = allocations - before;
    std::printf(
      "%s: update %.3f us on average, %.1f at most, %ld allocations (sum %g)\n",
      message == &feedback ? "feedback" : "trajectory", whole / static_cast<double>(count), longest, made,
      sum);
    code = made != 0 ? 1 : code;
  }
  return code;
}
