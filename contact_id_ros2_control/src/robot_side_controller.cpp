// Copyright the authors of contact_id_controller. Licensed under the Apache License, Version 2.0.
#include "contact_id_ros2_control/robot_side_controller.hpp"

#include <chrono>
#include <limits>
#include <stdexcept>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace contact_id_ros2_control
{

using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace
{

constexpr std::chrono::milliseconds kTells{100};
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

const char * const kBaseNames[kBase] = {
  "position.x", "position.y", "position.z", "orientation.x", "orientation.y", "orientation.z",
  "orientation.w", "linear_velocity.x", "linear_velocity.y", "linear_velocity.z",
  "angular_velocity.x", "angular_velocity.y", "angular_velocity.z"};

const char * words_of(Refusal refusal)
{
  switch (refusal) {
    case Refusal::kSizeOfMessage: return "its size is not that of its layout";
    case Refusal::kOfVersion: return "its layout has another version";
    case Refusal::kOtherJoints: return "it is of other joints, or of another order";
    case Refusal::kOfKind: return "its kind is none of 1, 2, 3";
    case Refusal::kOfStamp: return "its stamp or session is none";
    case Refusal::kNotFinite: return "a number is not finite, or beyond 1e9";
    case Refusal::kTimes: return "times of its points do not increase from 0";
    case Refusal::kQuaternion: return "its quaternion has not norm 1";
    case Refusal::kGain: return "a gain is not finite, or beyond 1e5";
    case Refusal::kMany: return "it has too many points, or another number of coordinates";
    case Refusal::kGood: break;
  }
  return "";
}

const char * words_of(State state)
{
  switch (state) {
    case State::kWaiting: return "damps, and follows the next command";
    case State::kFollowing: return "follows commands";
    case State::kTripped: return "damps: no command came for timeout_s; another sender, ~/reset or activation ends it";
    case State::kStopped: return "damps: stopped, until ~/emergency_stop with false";
  }
  return "";
}

}  // namespace

RobotSideController::CallbackReturn RobotSideController::on_init()
{
  const std::vector<double> none;
  try {
    auto_declare<std::vector<std::string>>("joints", {});
    auto_declare<std::vector<std::string>>("continuous_joints", {});
    auto_declare<std::vector<std::string>>("base_state_interfaces", {});
    auto_declare<bool>("floating_base", false);
    auto_declare<bool>("effort_state_interfaces", false);
    for (const char * name : {"position_gain", "velocity_gain", "damping_nm_s_rad", "effort_limits_nm",
        "effort_rate_limits_nm_s"})
    {
      auto_declare<std::vector<double>>(name, none);
    }
    auto_declare<double>("timeout_s", 0.05);
    auto_declare<double>("start_ramp_s", 1.0);
    auto_declare<double>("odometry_timeout_s", 0.05);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "not initialised: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration RobotSideController::command_interface_configuration() const
{
  InterfaceConfiguration out{interface_configuration_type::INDIVIDUAL, {}};
  for (const std::string & joint : settings_.joints) {
    out.names.push_back(joint + "/" + hardware_interface::HW_IF_EFFORT);
  }
  return out;
}

InterfaceConfiguration RobotSideController::state_interface_configuration() const
{
  InterfaceConfiguration out{interface_configuration_type::INDIVIDUAL, {}};
  for (const char * kind : {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY}) {
    for (const std::string & joint : settings_.joints) {out.names.push_back(joint + "/" + kind);}
  }
  out.names.insert(out.names.end(), base_interfaces_.begin(), base_interfaces_.end());
  if (measures_effort_) {
    for (const std::string & joint : settings_.joints) {
      out.names.push_back(joint + "/" + hardware_interface::HW_IF_EFFORT);
    }
  }
  return out;
}

std::vector<double> RobotSideController::one_each(const std::string & parameter)
{
  auto values = get_node()->get_parameter(parameter).as_double_array();
  if (values.size() == 1) {values.assign(settings_.joints.size(), values[0]);}
  return values;
}

Settings RobotSideController::settings_of_parameters()
{
  const auto node = get_node();
  settings_.joints = node->get_parameter("joints").as_string_array();
  settings_.floating_base = node->get_parameter("floating_base").as_bool();
  settings_.position_gain = one_each("position_gain");
  settings_.velocity_gain = one_each("velocity_gain");
  settings_.damping = one_each("damping_nm_s_rad");
  settings_.effort_limit = one_each("effort_limits_nm");
  settings_.effort_rate_limit = one_each("effort_rate_limits_nm_s");
  if (settings_.effort_rate_limit.empty()) {
    settings_.effort_rate_limit.assign(
      settings_.joints.size(), std::numeric_limits<double>::infinity());
  }
  settings_.timeout_s = node->get_parameter("timeout_s").as_double();
  settings_.ramp_s = node->get_parameter("start_ramp_s").as_double();
  settings_.turns.assign(settings_.joints.size(), false);
  for (const std::string & name : node->get_parameter("continuous_joints").as_string_array()) {
    const auto place = std::find(settings_.joints.begin(), settings_.joints.end(), name);
    if (place == settings_.joints.end()) {
      throw std::invalid_argument("continuous_joints has '" + name + "', which joints has not");
    }
    settings_.turns[static_cast<std::size_t>(place - settings_.joints.begin())] = true;
  }
  base_interfaces_ = node->get_parameter("base_state_interfaces").as_string_array();
  if (!base_interfaces_.empty() && (base_interfaces_.size() != kBase || !settings_.floating_base)) {
    throw std::invalid_argument(
            "base_state_interfaces are " + std::to_string(base_interfaces_.size()) +
            ", must be 13 where floating_base is true, else none");
  }
  measures_effort_ = node->get_parameter("effort_state_interfaces").as_bool();
  odometry_timeout_s_ = node->get_parameter("odometry_timeout_s").as_double();
  if (!(odometry_timeout_s_ > 0.0)) {
    throw std::invalid_argument(
            "odometry_timeout_s is " + std::to_string(odometry_timeout_s_) + ", must be above 0");
  }
  return settings_;
}

RobotSideController::CallbackReturn RobotSideController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();
  try {
    side_ = std::make_shared<RobotSide>(settings_of_parameters());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "not configured: %s", error.what());
    return CallbackReturn::ERROR;
  }
  const std::size_t n = settings_.joints.size();
  position_.assign(n, kUnknown);
  velocity_.assign(n, kUnknown);
  effort_.assign(n, 0.0);
  base_.fill(kUnknown);
  odometry_ = std::make_unique<Exchange<Base>>(Base{});
  const rclcpp::QoS newest = rclcpp::QoS(1).reliable();
  commands_ = node->create_subscription<std_msgs::msg::Float64MultiArray>(
    "~/commands", newest,
    [this](const std_msgs::msg::Float64MultiArray & message) {on_command(message);});
  odometries_.reset();
  if (settings_.floating_base && base_interfaces_.empty()) {
    odometries_ = node->create_subscription<nav_msgs::msg::Odometry>(
      "~/odometry", rclcpp::QoS(1).best_effort(),
      [this](const nav_msgs::msg::Odometry & message) {on_odometry(message);});
  }
  emergency_stop_ = node->create_service<std_srvs::srv::SetBool>(
    "~/emergency_stop",
    [this](const std_srvs::srv::SetBool::Request::SharedPtr request,
    std_srvs::srv::SetBool::Response::SharedPtr response) {
      request->data ? side_->stop() : side_->reset();
      response->success = true;
      response->message = request->data ? "stopped: damping" : "the next command is followed";
    });
  reset_ = node->create_service<std_srvs::srv::Trigger>(
    "~/reset",
    [this](const std_srvs::srv::Trigger::Request::SharedPtr,
    std_srvs::srv::Trigger::Response::SharedPtr response) {
      response->success = side_->state() == State::kTripped;
      response->message = response->success ? "the next command is followed" : "not tripped";
      if (response->success) {side_->reset();}
    });
  // Not in update, which does not log.
  teller_ = node->create_wall_timer(
    kTells, [side = side_, logger = node->get_logger(), told = std::make_shared<State>(side_->state())]() {
      const State state = side->state();
      if (state != *told) {RCLCPP_WARN(logger, "%s", words_of(state));}
      *told = state;
    });
  return CallbackReturn::SUCCESS;
}

std::vector<hardware_interface::StateInterface::SharedPtr>
RobotSideController::on_export_state_interfaces_list()
{
  const std::string name = get_node()->get_name();
  exported_.clear();
  const auto add = [this](const std::string & prefix, const char * what) {
      hardware_interface::InterfaceInfo info;
      info.name = what;
      info.data_type = "double";
      exported_.push_back(
        std::make_shared<hardware_interface::StateInterface>(
          hardware_interface::InterfaceDescription(prefix, info)));
    };
  add(name, "state");
  if (settings_.floating_base) {
    for (const char * what : kBaseNames) {add(name + "/base", what);}
  }
  return exported_;
}

RobotSideController::CallbackReturn RobotSideController::on_activate(const rclcpp_lifecycle::State &)
{
  // By number from here on: another order would drive other joints.
  const auto commanded = command_interface_configuration().names;
  const auto measured = state_interface_configuration().names;
  bool in_order = command_interfaces_.size() == commanded.size() &&
    state_interfaces_.size() == measured.size();
  for (std::size_t k = 0; in_order && k < commanded.size(); ++k) {
    in_order = command_interfaces_[k].get_name() == commanded[k];
  }
  for (std::size_t k = 0; in_order && k < measured.size(); ++k) {
    in_order = state_interfaces_[k].get_name() == measured[k];
  }
  if (!in_order) {
    RCLCPP_ERROR(
      get_node()->get_logger(), "not activated: got %zu command and %zu state interfaces, not in the order of "
      "%zu and %zu asked for", command_interfaces_.size(), state_interfaces_.size(), commanded.size(),
      measured.size());
    return CallbackReturn::ERROR;
  }
  const std::size_t n = effort_.size(), first = 2 * n + base_interfaces_.size();
  for (std::size_t j = 0; j < n && measures_effort_; ++j) {
    effort_[j] = state_interfaces_[first + j].get_optional().value_or(kUnknown);
  }
  side_->activate(measures_effort_ ? effort_.data() : nullptr);
  return CallbackReturn::SUCCESS;
}

RobotSideController::CallbackReturn RobotSideController::on_deactivate(const rclcpp_lifecycle::State &)
{
  bool written = true;
  for (auto & each : command_interfaces_) {written = each.set_value(0.0) && written;}
  if (!written) {
    RCLCPP_ERROR(get_node()->get_logger(), "zero effort could not be written to all joints");
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

return_type RobotSideController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  return return_type::OK;  // commands come by an exchange of their own, chained or not
}

return_type RobotSideController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  const std::size_t n = effort_.size();
  for (std::size_t j = 0; j < n; ++j) {
    position_[j] = state_interfaces_[j].get_optional().value_or(kUnknown);
    velocity_[j] = state_interfaces_[n + j].get_optional().value_or(kUnknown);
  }
  const std::int64_t now_ns = time.nanoseconds();
  side_->update(
    now_ns, period.seconds(), position_.data(), velocity_.data(), base(now_ns), effort_.data());
  bool written = true;
  for (std::size_t j = 0; j < n; ++j) {written = command_interfaces_[j].set_value(effort_[j]) && written;}
  if (!exported_.empty()) {
    (void)exported_[0]->set_value(static_cast<double>(side_->state()));
    for (std::size_t k = 1; k < exported_.size(); ++k) {(void)exported_[k]->set_value(base_[k - 1]);}
  }
  return written ? return_type::OK : return_type::ERROR;
}

// The base (13,) as it is known now, kept in base_; null: it is not.
const double * RobotSideController::base(std::int64_t now_ns)
{
  if (!settings_.floating_base) {return nullptr;}
  if (!base_interfaces_.empty()) {
    for (std::size_t k = 0; k < kBase; ++k) {
      base_[k] = state_interfaces_[2 * effort_.size() + k].get_optional().value_or(kUnknown);
    }
    return base_.data();
  }
  odometry_->newest();
  const Base & held = odometry_->held();
  const bool fresh = held.arrival_ns > 0 &&
    1e-9 * static_cast<double>(now_ns - held.arrival_ns) <= odometry_timeout_s_;
  if (fresh) {
    base_ = held.numbers;
  } else {
    base_.fill(kUnknown);
  }
  return fresh ? base_.data() : nullptr;
}

void RobotSideController::on_command(const std_msgs::msg::Float64MultiArray & message)
{
  const Refusal refusal = side_->take(message.data.data(), message.data.size());
  if (refusal != Refusal::kGood) {
    RCLCPP_WARN_THROTTLE(
      get_node()->get_logger(), *get_node()->get_clock(), 1000, "a command of %zu numbers is refused: %s",
      message.data.size(), words_of(refusal));
  }
}

void RobotSideController::on_odometry(const nav_msgs::msg::Odometry & message)
{
  const auto & p = message.pose.pose.position;
  const auto & o = message.pose.pose.orientation;
  const auto & u = message.twist.twist.linear;
  const auto & w = message.twist.twist.angular;
  Base & spare = odometry_->spare();
  spare.numbers = {p.x, p.y, p.z, o.x, o.y, o.z, o.w, u.x, u.y, u.z, w.x, w.y, w.z};
  spare.arrival_ns = get_node()->now().nanoseconds();
  odometry_->hand_over();
}

}  // namespace contact_id_ros2_control

PLUGINLIB_EXPORT_CLASS(
  contact_id_ros2_control::RobotSideController, controller_interface::ChainableControllerInterface)
