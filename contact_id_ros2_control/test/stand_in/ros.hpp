// Stand-in for what the controller uses of rclcpp and ros2_control: one header, behind the names of theirs.
//
// Kept of the originals: interfaces are handed over in the order asked for, a value that is not known is
// none, a parameter is declared once and may be overridden, update calls both parts of a chainable controller.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rclcpp
{
class Time
{
public:
  explicit Time(std::int64_t ns) : ns_(ns) {}
  std::int64_t nanoseconds() const {return ns_;}

private:
  std::int64_t ns_;
};

class Duration
{
public:
  explicit Duration(std::int64_t ns) : ns_(ns) {}
  double seconds() const {return static_cast<double>(ns_) / 1e9;}

private:
  std::int64_t ns_;
};

struct QoS
{
  explicit QoS(int) {}
  QoS & reliable() {return *this;}
  QoS & best_effort() {return *this;}
};

struct Parameter
{
  std::any value;
  std::vector<std::string> as_string_array() const {return std::any_cast<std::vector<std::string>>(value);}
  std::vector<double> as_double_array() const {return std::any_cast<std::vector<double>>(value);}
  double as_double() const {return std::any_cast<double>(value);}
  bool as_bool() const {return std::any_cast<bool>(value);}
};

struct Logger {};
struct Clock {};

template<class Message>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(const Message &)> callback;
};

struct TimerBase
{
  using SharedPtr = std::shared_ptr<TimerBase>;
  std::function<void()> callback;
};

template<class Kind>
struct Service
{
  using SharedPtr = std::shared_ptr<Service>;
  std::function<void(typename Kind::Request::SharedPtr, typename Kind::Response::SharedPtr)> callback;
};
}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::printf("ERROR: " __VA_ARGS__), std::printf("\n"))
#define RCLCPP_WARN(logger, ...) ((void)(logger), std::printf("WARN: " __VA_ARGS__), std::printf("\n"))
#define RCLCPP_WARN_THROTTLE(logger, clock, ms, ...) \
  ((void)(logger), (void)(clock), std::printf("WARN: " __VA_ARGS__), std::printf("\n"))

namespace std_msgs::msg { struct Float64MultiArray { std::vector<double> data; }; }
namespace std_srvs::srv
{
struct SetBool
{
  struct Request { using SharedPtr = std::shared_ptr<Request>; bool data = false; };
  struct Response { using SharedPtr = std::shared_ptr<Response>; bool success = false; std::string message; };
};
struct Trigger
{
  struct Request { using SharedPtr = std::shared_ptr<Request>; };
  using Response = SetBool::Response;
};
}  // namespace std_srvs::srv
namespace nav_msgs::msg
{
struct Three { double x = 0.0, y = 0.0, z = 0.0; };
struct Four { double x = 0.0, y = 0.0, z = 0.0, w = 1.0; };
struct Odometry
{
  struct { struct { Three position; Four orientation; } pose; } pose;
  struct { struct { Three linear, angular; } twist; } twist;
};
}  // namespace nav_msgs::msg

namespace rclcpp_lifecycle
{
struct State {};

class LifecycleNode
{
public:
  std::map<std::string, std::any> parameters;
  std::map<std::string, std::any> made;   // subscriptions and services by name
  std::int64_t now_ns = 0;

  rclcpp::Logger get_logger() const {return {};}
  std::shared_ptr<rclcpp::Clock> get_clock() const {return std::make_shared<rclcpp::Clock>();}
  rclcpp::Time now() const {return rclcpp::Time(now_ns);}
  const char * get_name() const {return "robot_side";}
  rclcpp::Parameter get_parameter(const std::string & name) const {return {parameters.at(name)};}

  template<class Message, class Callback>
  typename rclcpp::Subscription<Message>::SharedPtr create_subscription(
    const std::string & name, const rclcpp::QoS &, Callback callback)
  {
    auto out = std::make_shared<rclcpp::Subscription<Message>>();
    out->callback = callback;
    made[name] = out;
    return out;
  }

  template<class Time, class Callback>
  rclcpp::TimerBase::SharedPtr create_wall_timer(const Time &, Callback callback)
  {
    static_assert(std::is_invocable_v<const Callback &>, "rclcpp takes no other");
    auto out = std::make_shared<rclcpp::TimerBase>();
    out->callback = callback;
    made["timer"] = out;
    return out;
  }

  template<class Kind, class Callback>
  typename rclcpp::Service<Kind>::SharedPtr create_service(const std::string & name, Callback callback)
  {
    auto out = std::make_shared<rclcpp::Service<Kind>>();
    out->callback = callback;
    made[name] = out;
    return out;
  }
};
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
constexpr char HW_IF_POSITION[] = "position", HW_IF_VELOCITY[] = "velocity", HW_IF_EFFORT[] = "effort";

struct InterfaceInfo { std::string name, data_type; };
struct InterfaceDescription
{
  InterfaceDescription(const std::string & prefix, const InterfaceInfo & info)
  : name(prefix + "/" + info.name) {}
  std::string name;
};

class Handle
{
public:
  using SharedPtr = std::shared_ptr<Handle>;
  explicit Handle(const InterfaceDescription & description) : name_(description.name) {}
  explicit Handle(std::string name) : name_(std::move(name)) {}
  const std::string & get_name() const {return name_;}
  [[nodiscard]] bool set_value(double value) {value_ = value; return true;}
  [[nodiscard]] std::optional<double> get_optional() const {return value_;}
  void forget() {value_.reset();}

private:
  std::string name_;
  std::optional<double> value_;
};
using StateInterface = Handle;
}  // namespace hardware_interface

namespace controller_interface
{
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration
{
  interface_configuration_type type;
  std::vector<std::string> names;
};

class ChainableControllerInterface
{
public:
  virtual ~ChainableControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const {return node_;}

  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period)
  {
    const return_type first = update_reference_from_subscribers(time, period);
    return first == return_type::OK ? update_and_write_commands(time, period) : first;
  }

  std::vector<hardware_interface::StateInterface::SharedPtr> export_state_interfaces()
  {
    return on_export_state_interfaces_list();
  }

  std::vector<hardware_interface::Handle> command_interfaces_, state_interfaces_;

protected:
  virtual std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list() = 0;
  virtual return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) = 0;
  virtual return_type update_and_write_commands(const rclcpp::Time &, const rclcpp::Duration &) = 0;

  template<class Type>
  void auto_declare(const std::string & name, const Type & value)
  {
    node_->parameters.emplace(name, value);
  }

private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_ =
    std::make_shared<rclcpp_lifecycle::LifecycleNode>();
};
}  // namespace controller_interface

#define PLUGINLIB_EXPORT_CLASS(kind, base) \
  static_assert(std::is_base_of_v<base, kind> && !std::is_abstract_v<kind>);
