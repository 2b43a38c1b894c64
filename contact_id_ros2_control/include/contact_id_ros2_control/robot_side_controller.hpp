// Copyright the authors of contact_id_controller. Licensed under the Apache License, Version 2.0.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "contact_id_ros2_control/robot_side.hpp"
#include "controller_interface/chainable_controller_interface.hpp"
#include "hardware_interface/handle.hpp"
#include "nav_msgs/msg/odometry.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_lifecycle/state.hpp"
#include "std_msgs/msg/float64_multi_array.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "std_srvs/srv/trigger.hpp"

namespace contact_id_ros2_control
{

// RobotSide as a controller: commands on ~/commands, the base from state interfaces or ~/odometry.
//
// Exports its state (0 waiting, 1 following, 2 tripped, 3 stopped) and, where the base floats, the base's 13
// numbers as state interfaces for other controllers. ~/emergency_stop latches a stop, ~/reset ends it.
class RobotSideController : public controller_interface::ChainableControllerInterface
{
public:
  using CallbackReturn = controller_interface::CallbackReturn;

  CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  CallbackReturn on_configure(const rclcpp_lifecycle::State & previous_state) override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State & previous_state) override;
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous_state) override;

protected:
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  struct Base
  {
    std::array<double, kBase> numbers{};
    std::int64_t arrival_ns = 0;
  };

  void on_command(const std_msgs::msg::Float64MultiArray & message);
  void on_odometry(const nav_msgs::msg::Odometry & message);
  Settings settings_of_parameters();
  std::vector<double> one_each(const std::string & parameter);
  const double * base(std::int64_t now_ns);

  Settings settings_;
  std::vector<std::string> base_interfaces_;
  double odometry_timeout_s_ = 0.0;
  bool measures_effort_ = false;  // then the ramp begins at the efforts that act on activation
  std::shared_ptr<RobotSide> side_;
  std::unique_ptr<Exchange<Base>> odometry_;
  std::vector<double> position_, velocity_, effort_;
  std::array<double, kBase> base_{};
  std::vector<hardware_interface::StateInterface::SharedPtr> exported_;
  rclcpp::Subscription<std_msgs::msg::Float64MultiArray>::SharedPtr commands_;
  rclcpp::Subscription<nav_msgs::msg::Odometry>::SharedPtr odometries_;
  rclcpp::Service<std_srvs::srv::SetBool>::SharedPtr emergency_stop_;
  rclcpp::Service<std_srvs::srv::Trigger>::SharedPtr reset_;
  rclcpp::TimerBase::SharedPtr teller_;  // of changes of state, in the log
};

}  // namespace contact_id_ros2_control
