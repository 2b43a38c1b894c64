// Copyright the authors of contact_id_controller. Licensed under the Apache License, Version 2.0.
//
// The robot's side of contact_id_controller: follows one command by its stamp and damps without one.
//
//   trajectory   tau = effort(t) + K (q_set(t) - q) + D (v_set(t) - v)
//   feedback     tau = effort + G (x_0 (-) x),  x = (base, joints), its velocities behind it
//   else         tau = -damping v
//
// Header-only, C++17, no ROS. Memory is allocated when settings are given, and never by read, take or
// update: these take arrays, return a status, and neither lock, throw nor log.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace contact_id_ros2_control
{

// Layout of a command: these numbers, then its body, all doubles.
//   trajectory  times (p) s, the first 0; positions, velocities, accelerations, efforts (p, 4, n)
//   feedback    base (13) where it floats; positions, velocities, efforts (n); gain (n, 2 nv)
//   stop        nothing
// A base is position, m, and quaternion xyzw in the world frame, then linear and angular velocity, m/s
// and rad/s, in the base frame. Coordinates (nv) are the base's six, then the joints in the order of the
// command.
enum Header : std::size_t
{
  kVersion, kNames, kKind, kSession, kSeconds, kNanoseconds, kJoints, kSize, kHeaderSize
};

constexpr double kLayoutVersion = 1.0;
constexpr std::size_t kBase = 13, kBaseMotion = 6;
constexpr std::size_t kMostJoints = 64, kMostPoints = 64;
constexpr double kGreatestGain = 1e5;     // of a feedback, N·m/rad and N·m·s/rad
constexpr double kGreatestNumber = 1e9;   // nothing that is measured or commanded is larger
// Part of a command's torque that acts already where the command is handed over to in timeout_s: a robot with a load
// cannot wait for a ramp, as its plan walks on.
constexpr double kCarries = 0.15;
constexpr double kTurn = 6.283185307179586476925286766559;

enum class Kind : int { kNone, kTrajectory, kFeedback, kStop };

enum class Refusal : int
{
  kGood, kSizeOfMessage, kOfVersion, kOtherJoints, kOfKind, kOfStamp, kNotFinite, kTimes, kQuaternion,
  kGain, kMany
};

enum class State : int { kWaiting, kFollowing, kTripped, kStopped };

// What a robot is; vectors (n), n the number of joints.
struct Settings
{
  std::vector<std::string> joints;            // in the order of the command
  bool floating_base = false;
  std::vector<double> position_gain;          // K, N·m/rad
  std::vector<double> velocity_gain;          // D, N·m·s/rad
  std::vector<double> damping;                // N·m·s/rad, without a command
  std::vector<double> effort_limit;           // N·m; infinite where there is none
  std::vector<double> effort_rate_limit;      // N·m/s; infinite where there is none
  std::vector<bool> turns;                    // joints that turn without end
  double timeout_s = 0.05;                    // longest silence
  double ramp_s = 1.0;                        // from damping to the whole torque
};

// 32 bits of names in their order (FNV-1a, each name ended by a zero): a double holds them.
inline std::uint32_t hash_of(const std::vector<std::string> & names)
{
  std::uint32_t hash = 2166136261u;
  for (const std::string & name : names) {
    for (std::size_t k = 0; k <= name.size(); ++k) {
      hash ^= static_cast<unsigned char>(k < name.size() ? name[k] : '\0');
      hash *= 16777619u;
    }
  }
  return hash;
}

// One command, with room for the largest that its robot may get.
struct Command
{
  Kind kind = Kind::kNone;
  double session = 0.0;
  std::int64_t stamp_ns = 0;                  // 0: from its arrival on
  std::size_t points = 0;
  std::vector<double> times, values;          // trajectory
  double base[kBase] = {};                    // feedback, from here on
  std::vector<double> position, velocity, effort, gain;
};

namespace detail
{

inline bool all_within(const double * values, std::size_t count, double limit)
{
  bool good = true;
  for (std::size_t k = 0; k < count; ++k) {good = good && std::abs(values[k]) <= limit;}
  return good;
}

inline bool is_count(double value, double most)
{
  return value >= 0.0 && value <= most && value == std::floor(value);
}

struct Vector { double x, y, z; };

inline Vector cross(const Vector & a, const Vector & b)
{
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// R(q)^T a for a unit quaternion xyzw.
inline Vector turned_back(const double * q, const Vector & a)
{
  const Vector u{-q[0], -q[1], -q[2]};
  const Vector t = cross(u, a);
  const Vector c = cross(u, t);
  return {a.x + 2.0 * (q[3] * t.x + c.x), a.y + 2.0 * (q[3] * t.y + c.y),
    a.z + 2.0 * (q[3] * t.z + c.z)};
}

// Motion (6,), linear before angular, in the frame of pose `from` (7,) that leads to pose `to` in unit time.
inline void base_difference(const double * from, const double * to, double * out)
{
  const Vector way = turned_back(from + 3, {to[0] - from[0], to[1] - from[1], to[2] - from[2]});
  const double * a = from + 3, * b = to + 3;
  Vector w{a[3] * b[0] - a[0] * b[3] - a[1] * b[2] + a[2] * b[1],
    a[3] * b[1] - a[1] * b[3] - a[2] * b[0] + a[0] * b[2],
    a[3] * b[2] - a[2] * b[3] - a[0] * b[1] + a[1] * b[0]};
  double cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  if (cosine < 0.0) {
    cosine = -cosine;
    w = {-w.x, -w.y, -w.z};
  }
  const double sine = std::sqrt(w.x * w.x + w.y * w.y + w.z * w.z);
  const double angle = 2.0 * std::atan2(sine, cosine);
  const double scale = sine > 1e-9 ? angle / sine : 2.0 / cosine;
  w = {scale * w.x, scale * w.y, scale * w.z};
  const double squared = angle * angle;
  const double share = angle > 1e-2 ?
    (1.0 - 0.5 * angle * cosine / sine) / squared :
    1.0 / 12.0 + squared * (1.0 / 720.0 + squared / 30240.0);
  const Vector c = cross(w, way);
  const Vector cc = cross(w, c);
  out[0] = way.x - 0.5 * c.x + share * cc.x;
  out[1] = way.y - 0.5 * c.y + share * cc.y;
  out[2] = way.z - 0.5 * c.z + share * cc.z;
  out[3] = w.x;
  out[4] = w.y;
  out[5] = w.z;
}

// Position, velocity, effort of joint j at a time since the first point; at the ends those of that point.
inline void sample(
  const Command & command, std::size_t joints, std::size_t j, std::size_t k, double since, double * out)
{
  const std::size_t last = command.points - 1, stride = 4 * joints;
  if (!(since > 0.0 && since < command.times[last])) {
    const double * held = &command.values[(since > 0.0 ? last : 0) * stride + j];
    out[0] = held[0];
    out[1] = held[joints];
    out[2] = held[3 * joints];
    return;
  }
  const double step = command.times[k + 1] - command.times[k];
  const double u = (since - command.times[k]) / step;
  const double * from = &command.values[k * stride + j];
  const double * to = from + stride;
  const double way = to[0] - from[0];
  const double v0 = from[joints] * step, v1 = to[joints] * step;
  const double a0 = from[2 * joints] * step * step, a1 = to[2 * joints] * step * step;
  const double c = 10.0 * way - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1;
  const double d = -15.0 * way + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1;
  const double e = 6.0 * way - 3.0 * (v0 + v1) + 0.5 * (a1 - a0);
  out[0] = from[0] + u * (v0 + u * (0.5 * a0 + u * (c + u * (d + u * e))));
  out[1] = (v0 + u * (a0 + u * (3.0 * c + u * (4.0 * d + u * 5.0 * e)))) / step;
  out[2] = (1.0 - u) * from[3 * joints] + u * to[3 * joints];
}

}  // namespace detail

// Reads the numbers of one robot's commands.
class Reader
{
public:
  explicit Reader(const Settings & settings)
  : joints_(settings.joints.size()), motions_(joints_ + (settings.floating_base ? kBaseMotion : 0)),
    names_(static_cast<double>(hash_of(settings.joints))), floats_(settings.floating_base) {}

  // An empty command with all the room that one needs.
  Command room() const
  {
    Command out;
    out.times.resize(kMostPoints);
    out.values.resize(kMostPoints * 4 * joints_);
    for (auto * part : {&out.position, &out.velocity, &out.effort}) {part->resize(joints_);}
    out.gain.resize(joints_ * 2 * motions_);
    return out;
  }

  // Take a message (size,) over into a command; where it is refused that is none.
  Refusal read(const double * data, std::size_t size, Command & out) const
  {
    out.kind = Kind::kNone;
    if (data == nullptr || size < kHeaderSize) {return Refusal::kSizeOfMessage;}
    if (data[kVersion] != kLayoutVersion) {return Refusal::kOfVersion;}
    if (!detail::is_count(data[kKind], 3.0) || data[kKind] == 0.0) {return Refusal::kOfKind;}
    if (data[kJoints] != static_cast<double>(joints_) || data[kNames] != names_) {
      return Refusal::kOtherJoints;
    }
    const double most_s = 4294967295.0;
    if (!detail::is_count(data[kSeconds], most_s) || !detail::is_count(data[kNanoseconds], 999999999.0) ||
      !detail::is_count(data[kSession], 9007199254740992.0))
    {
      return Refusal::kOfStamp;
    }
    const Kind kind = static_cast<Kind>(static_cast<int>(data[kKind]));
    if (!detail::is_count(data[kSize], 1e6)) {return Refusal::kMany;}
    const std::size_t count = static_cast<std::size_t>(data[kSize]);
    const double * body = data + kHeaderSize;
    const std::size_t rest = size - kHeaderSize;
    Refusal refusal = Refusal::kGood;
    if (kind == Kind::kTrajectory) {
      refusal = read_trajectory(body, rest, count, out);
    } else if (kind == Kind::kFeedback) {
      refusal = read_feedback(body, rest, count, out);
    } else if (count != 0 || rest != 0) {
      refusal = Refusal::kSizeOfMessage;
    }
    if (refusal != Refusal::kGood) {return refusal;}
    out.stamp_ns = static_cast<std::int64_t>(data[kSeconds]) * 1000000000 +
      static_cast<std::int64_t>(data[kNanoseconds]);
    out.session = data[kSession];
    out.kind = kind;
    return Refusal::kGood;
  }

private:
  Refusal read_trajectory(const double * body, std::size_t size, std::size_t points, Command & out) const
  {
    if (points < 1 || points > kMostPoints) {return Refusal::kMany;}
    if (size != points * (1 + 4 * joints_)) {return Refusal::kSizeOfMessage;}
    if (!detail::all_within(body, size, kGreatestNumber)) {return Refusal::kNotFinite;}
    if (body[0] != 0.0) {return Refusal::kTimes;}
    for (std::size_t k = 1; k < points; ++k) {
      if (!(body[k] > body[k - 1])) {return Refusal::kTimes;}
    }
    out.points = points;
    std::copy(body, body + points, out.times.begin());
    std::copy(body + points, body + size, out.values.begin());
    return Refusal::kGood;
  }

  Refusal read_feedback(const double * body, std::size_t size, std::size_t motions, Command & out) const
  {
    const std::size_t base = floats_ ? kBase : 0;
    if (motions != motions_) {return Refusal::kMany;}
    if (size != base + 3 * joints_ + joints_ * 2 * motions_) {return Refusal::kSizeOfMessage;}
    const double * gain = body + base + 3 * joints_;
    if (!detail::all_within(body, base + 3 * joints_, kGreatestNumber)) {return Refusal::kNotFinite;}
    if (!detail::all_within(gain, joints_ * 2 * motions_, kGreatestGain)) {return Refusal::kGain;}
    if (floats_) {
      double norm = 0.0;
      for (std::size_t k = 3; k < 7; ++k) {norm += body[k] * body[k];}
      norm = std::sqrt(norm);
      if (!(std::abs(norm - 1.0) <= 1e-3)) {return Refusal::kQuaternion;}
      std::copy(body, body + base, out.base);
    }
    const double * from = body + base;
    for (auto * part : {&out.position, &out.velocity, &out.effort}) {
      std::copy(from, from + joints_, part->begin());
      from += joints_;
    }
    std::copy(gain, gain + joints_ * 2 * motions_, out.gain.begin());
    return Refusal::kGood;
  }

  std::size_t joints_, motions_;
  double names_;
  bool floats_;
};

// Hands things from one thread to another, the newest one only, without a lock.
template<class Thing>
class Exchange
{
public:
  explicit Exchange(const Thing & room)
  : things_{room, room, room} {}

  // Of the thread that gives.
  Thing & spare() {return things_[back_];}

  void hand_over() {back_ = shared_.exchange(back_ | kNew, std::memory_order_acq_rel) & kPlace;}

  // Of the thread that takes: the newest since the last call; null: there is none.
  const Thing * newest()
  {
    if ((shared_.load(std::memory_order_relaxed) & kNew) == 0) {return nullptr;}
    front_ = shared_.exchange(front_, std::memory_order_acq_rel) & kPlace;
    return &things_[front_];
  }

  const Thing & held() const {return things_[front_];}

private:
  static constexpr unsigned kPlace = 3, kNew = 4;
  Thing things_[3];
  unsigned back_ = 0, front_ = 1;
  std::atomic<unsigned> shared_{2};
};

// What the robot's own side does in each period.
class RobotSide
{
public:
  // Throws std::invalid_argument, which names the value, for settings that are none.
  explicit RobotSide(const Settings & settings)
  : settings_(checked(settings)), reader_(settings), exchange_(reader_.room()),
    motions_(joints() + (settings.floating_base ? kBaseMotion : 0)), away_(2 * motions_),
    sent_(joints()), held_(joints()), wanted_(joints()) {}

  std::size_t joints() const {return settings_.joints.size();}
  State state() const {return state_.load(std::memory_order_relaxed);}

  // In the thread of messages: read one and hand it over.
  Refusal take(const double * data, std::size_t size)
  {
    const Refusal refusal = reader_.read(data, size, exchange_.spare());
    if (refusal == Refusal::kGood) {
      if (exchange_.spare().kind == Kind::kStop) {
        stop();  // it must not be overtaken by the command behind it
      } else {
        exchange_.hand_over();
      }
    }
    return refusal;
  }

  // In any thread: latch the stop; let a tripped or stopped one follow the next command.
  void stop() {stop_asked_.store(true, std::memory_order_release);}
  void reset() {reset_asked_.store(true, std::memory_order_release);}

  // In the thread of update. Activated: nothing has come yet; a stop stays latched.
  //
  // efforts (n,) that act now, or null: the ramp begins there, so that who stands on another controller's torques
  // goes on standing, and takes timeout_s where they carry a load. Without a command they are held for timeout_s.
  void activate(const double * efforts = nullptr)
  {
    exchange_.newest();
    following_ = false;
    waited_s_ = 0.0;
    holds_ = efforts != nullptr && state() != State::kStopped &&
      detail::all_within(efforts, joints(), kGreatestNumber);
    for (std::size_t j = 0; j < joints(); ++j) {
      const double limit = settings_.effort_limit[j];
      sent_[j] = held_[j] = holds_ ? std::min(std::max(efforts[j], -limit), limit) : 0.0;
    }
    if (state() != State::kStopped) {set(State::kWaiting);}
  }

  // Torques (n,) of a period of dt seconds that begins now, for measured q, v (n,) and base (13,) or null.
  //
  // Whatever comes in: what goes out is finite and within the limits.
  void update(
    std::int64_t now_ns, double dt_s, const double * q, const double * v, const double * base, double * out)
  {
    now_ns = std::max<std::int64_t>(now_ns, 0);
    const double passed = dt_s > 0.0 ? dt_s : 0.0;  // silence is counted so: clocks of stamps may jump
    silent_s_ += passed;
    if (!look(now_ns) && following_ && silent_s_ > settings_.timeout_s) {
      following_ = false;
      set(State::kTripped);
    }
    const bool leads = following_ && torques(now_ns, q, v, base);
    if (leads && followed_s_ == 0.0) {ramp_s_ = ramp();}
    const double share = leads ? share_of(passed) : 0.0;
    if (!following_) {waited_s_ += passed;}
    holds_ = holds_ && share < 1.0 && waited_s_ <= settings_.timeout_s &&
      (state() == State::kWaiting || state() == State::kFollowing);
    for (std::size_t j = 0; j < joints(); ++j) {
      double torque = std::isfinite(v[j]) ? -settings_.damping[j] * v[j] : 0.0;
      if (holds_) {torque += held_[j];}
      if (leads) {
        torque += share * (wanted_[j] - torque);
        const double step = settings_.effort_rate_limit[j] * passed;
        if (std::isfinite(step)) {
          torque = std::min(std::max(torque, sent_[j] - step), sent_[j] + step);
        }
      }
      const double limit = settings_.effort_limit[j];
      torque = std::min(std::max(torque, -limit), limit);
      out[j] = sent_[j] = std::isfinite(torque) ? torque : 0.0;
    }
  }

private:
  static const Settings & checked(const Settings & s)
  {
    const std::size_t n = s.joints.size();
    if (n < 1 || n > kMostJoints) {
      throw std::invalid_argument("joints are " + std::to_string(n) + ", must be 1 to 64");
    }
    if (s.turns.size() != n) {throw std::invalid_argument("turns must have one value a joint");}
    struct Row { const char * name; const std::vector<double> * values; bool may_be_infinite; };
    for (const Row & row : {Row{"position_gain", &s.position_gain, false},
        Row{"velocity_gain", &s.velocity_gain, false}, Row{"damping", &s.damping, false},
        Row{"effort_limit", &s.effort_limit, true}, Row{"effort_rate_limit", &s.effort_rate_limit, true}})
    {
      if (row.values->size() != n) {
        throw std::invalid_argument(
                std::string(row.name) + " has " + std::to_string(row.values->size()) +
                " values, must have " + std::to_string(n) + ", one a joint");
      }
      for (double value : *row.values) {
        if (!(value >= 0.0 && (row.may_be_infinite || value <= kGreatestGain))) {
          throw std::invalid_argument(
                  std::string(row.name) + " is " + std::to_string(value) + ", must be 0 or more" +
                  (row.may_be_infinite ? "" : ", at most 1e5"));
        }
      }
    }
    if (!(s.timeout_s > 0.0 && s.timeout_s <= 10.0)) {
      throw std::invalid_argument("timeout_s is " + std::to_string(s.timeout_s) + ", must be in (0, 10]");
    }
    if (!(s.ramp_s >= 0.0 && s.ramp_s <= 60.0)) {
      throw std::invalid_argument("ramp_s is " + std::to_string(s.ramp_s) + ", must be in [0, 60]");
    }
    return s;
  }

  static double seconds(std::int64_t ns) {return static_cast<double>(ns) / 1e9;}

  void set(State state) {state_.store(state, std::memory_order_relaxed);}

  // Take what was asked for and what has come since the last period; whether a command is followed anew.
  bool look(std::int64_t now_ns)
  {
    if (reset_asked_.exchange(false, std::memory_order_acq_rel) && !following_) {
      may_return_ = true;
      set(State::kWaiting);
    }
    const Command * command = exchange_.newest();
    if (stop_asked_.exchange(false, std::memory_order_acq_rel)) {
      following_ = may_return_ = false;
      set(State::kStopped);
    }
    // Its room is exchanged already: from here on the held one is the newest, followed or not.
    if (command == nullptr || state() == State::kStopped) {return false;}
    if (state() == State::kTripped && !may_return_ && command->session == session_) {return false;}
    if (!following_) {followed_s_ = 0.0;}
    following_ = true;
    may_return_ = false;
    arrival_ns_ = now_ns;
    silent_s_ = 0.0;
    session_ = command->session;
    set(State::kFollowing);
    return true;
  }

  // Of the command's torque, the rest being that of damping; it grows with each period that is led.
  double share_of(double passed)
  {
    followed_s_ += passed;
    return followed_s_ < ramp_s_ ? followed_s_ / ramp_s_ : 1.0;
  }

  // How long the torque ramps that begins now.
  double ramp() const
  {
    double acts = 0.0, wanted = 0.0;
    for (std::size_t j = 0; j < joints(); ++j) {
      acts += std::abs(held_[j]);
      wanted += std::abs(wanted_[j]);
    }
    const bool carries = holds_ && acts >= kCarries * wanted;
    return carries ? std::min(settings_.ramp_s, settings_.timeout_s) : settings_.ramp_s;
  }

  // Torques of the command that is followed, within no limits yet; whether they are any.
  bool torques(std::int64_t now_ns, const double * q, const double * v, const double * base)
  {
    const std::size_t n = joints();
    if (!detail::all_within(q, n, kGreatestNumber) || !detail::all_within(v, n, kGreatestNumber)) {
      return false;
    }
    const Command & command = exchange_.held();
    if (command.kind == Kind::kTrajectory) {
      trajectory_torques(command, now_ns, q, v);
    } else if (!feedback_torques(command, q, v, base)) {
      return false;
    }
    return detail::all_within(wanted_.data(), n, std::numeric_limits<double>::max());
  }

  void trajectory_torques(
    const Command & command, std::int64_t now_ns, const double * q, const double * v)
  {
    const std::int64_t begins_ns = command.stamp_ns == 0 ? arrival_ns_ : command.stamp_ns;
    const double since = seconds(now_ns - begins_ns);
    std::size_t k = 0;
    while (k + 2 < command.points && command.times[k + 1] <= since) {++k;}
    for (std::size_t j = 0; j < joints(); ++j) {
      double set[3];
      detail::sample(command, joints(), j, k, since, set);
      double away = set[0] - q[j];
      if (settings_.turns[j]) {away -= kTurn * std::nearbyint(away / kTurn);}
      wanted_[j] = set[2] + settings_.position_gain[j] * away +
        settings_.velocity_gain[j] * (set[1] - v[j]);
    }
  }

  bool feedback_torques(
    const Command & command, const double * q, const double * v, const double * base)
  {
    const std::size_t n = joints(), first = motions_ - n;
    if (settings_.floating_base) {
      if (base == nullptr || !detail::all_within(base, kBase, kGreatestNumber)) {return false;}
      double norm = 0.0;
      for (std::size_t k = 3; k < 7; ++k) {norm += base[k] * base[k];}
      if (!(std::abs(std::sqrt(norm) - 1.0) <= 1e-3)) {return false;}
      detail::base_difference(base, command.base, away_.data());
      for (std::size_t k = 0; k < kBaseMotion; ++k) {
        away_[motions_ + k] = command.base[7 + k] - base[7 + k];
      }
    }
    for (std::size_t j = 0; j < n; ++j) {
      double away = command.position[j] - q[j];
      if (settings_.turns[j]) {away -= kTurn * std::nearbyint(away / kTurn);}
      away_[first + j] = away;
      away_[motions_ + first + j] = command.velocity[j] - v[j];
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double * row = &command.gain[j * 2 * motions_];
      double sum = command.effort[j];
      for (std::size_t k = 0; k < 2 * motions_; ++k) {sum += row[k] * away_[k];}
      wanted_[j] = sum;
    }
    return true;
  }

  Settings settings_;
  Reader reader_;
  Exchange<Command> exchange_;
  std::size_t motions_;
  std::vector<double> away_, sent_, held_, wanted_;
  std::atomic<State> state_{State::kWaiting};
  std::atomic<bool> stop_asked_{false}, reset_asked_{false};
  bool following_ = false, may_return_ = false, holds_ = false;
  double session_ = 0.0, silent_s_ = 0.0, followed_s_ = 0.0, waited_s_ = 0.0, ramp_s_ = 0.0;
  std::int64_t arrival_ns_ = 0;
};

}  // namespace contact_id_ros2_control
