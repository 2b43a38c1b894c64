// The controller between a stand-in for ros2_control and commands: exit code 1 and a line where it is wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/robot_side_controller.cpp"

using controller_interface::CallbackReturn;
using controller_interface::return_type;
namespace ours = contact_id_ros2_control;
using Numbers = std_msgs::msg::Float64MultiArray;

#define EXPECT(what) \
  do { \
    if (!(what)) {std::printf("line %d: not %s\n", __LINE__, #what); std::exit(1);} \
  } while (false)

namespace
{

const rclcpp_lifecycle::State kState;
constexpr std::int64_t kPeriodNs = 1000000;
const std::vector<std::string> kJoints = {"one", "two"};

// The controller with interfaces as asked for; it knows what its hardware and its topics would do.
struct Bench
{
  ours::RobotSideController controller;
  std::int64_t now_ns = 1000000000;

  explicit Bench(bool floats = false, bool by_interfaces = false)
  {
    auto & parameters = controller.get_node()->parameters;
    parameters["joints"] = kJoints;
    for (const char * name : {"position_gain", "velocity_gain"}) {
      parameters[name] = std::vector<double>{10.0};
    }
    parameters["damping_nm_s_rad"] = std::vector<double>{0.5, 0.25};
    parameters["effort_limits_nm"] = std::vector<double>{3.0};
    parameters["start_ramp_s"] = 0.0;
    parameters["timeout_s"] = 0.0105;
    parameters["odometry_timeout_s"] = 0.003;
    parameters["floating_base"] = floats;
    if (by_interfaces) {
      parameters["base_state_interfaces"] = std::vector<std::string>{
        "b/1", "b/2", "b/3", "b/4", "b/5", "b/6", "b/7", "b/8", "b/9", "b/10", "b/11", "b/12", "b/13"};
    }
    EXPECT(controller.on_init() == CallbackReturn::SUCCESS);
  }

  void configure_and_activate()
  {
    EXPECT(controller.on_configure(kState) == CallbackReturn::SUCCESS);
    exported = controller.export_state_interfaces();
    for (const auto & name : controller.command_interface_configuration().names) {
      controller.command_interfaces_.emplace_back(name);
    }
    for (const auto & name : controller.state_interface_configuration().names) {
      controller.state_interfaces_.emplace_back(name);
      EXPECT(controller.state_interfaces_.back().set_value(0.0));
    }
    EXPECT(controller.on_activate(kState) == CallbackReturn::SUCCESS);
  }

  void move(std::size_t joint, double velocity)
  {
    EXPECT(controller.state_interfaces_[kJoints.size() + joint].set_value(velocity));
  }

  double effort(std::size_t joint) const {return *controller.command_interfaces_[joint].get_optional();}
  double state() const {return *exported[0]->get_optional();}

  void period()
  {
    now_ns += kPeriodNs;
    controller.get_node()->now_ns = now_ns;
    EXPECT(controller.update(rclcpp::Time(now_ns), rclcpp::Duration(kPeriodNs)) == return_type::OK);
  }

  template<class Message>
  void send(const std::string & topic, const Message & message)
  {
    std::any_cast<typename rclcpp::Subscription<Message>::SharedPtr>(
      controller.get_node()->made.at(topic))->callback(message);
  }

  template<class Kind>
  bool call(const std::string & name, bool value = false)
  {
    const auto request = std::make_shared<typename Kind::Request>();
    if constexpr (std::is_same_v<Kind, std_srvs::srv::SetBool>) {request->data = value;}
    const auto response = std::make_shared<typename Kind::Response>();
    std::any_cast<typename rclcpp::Service<Kind>::SharedPtr>(
      controller.get_node()->made.at(name))->callback(request, response);
    (void)value;
    return response->success;
  }

  // The node's timer, which tells changes of state.
  void tell()
  {
    std::any_cast<rclcpp::TimerBase::SharedPtr>(controller.get_node()->made.at("timer"))->callback();
  }

  std::vector<hardware_interface::StateInterface::SharedPtr> exported;
};

Numbers standing(double first, double second)
{
  Numbers out;
  out.data = {1.0, static_cast<double>(ours::hash_of(kJoints)), 1.0, 7.0, 0.0, 0.0, 2.0, 1.0, 0.0};
  out.data.resize(9 + 6, 0.0);
  out.data.insert(out.data.end(), {first, second});
  return out;
}

Numbers feedback(double gain_of_height)
{
  Numbers out;
  out.data = {1.0, static_cast<double>(ours::hash_of(kJoints)), 2.0, 7.0, 0.0, 0.0, 2.0, 8.0};
  out.data.insert(out.data.end(), {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0});
  out.data.resize(8 + 13 + 6 + 2 * 16, 0.0);
  out.data[8 + 13 + 6 + 2] = gain_of_height;
  return out;
}

void follows_and_damps_and_leaves_zero()
{
  Bench bench;
  bench.configure_and_activate();
  EXPECT(bench.exported.size() == 1 && bench.exported[0]->get_name() == "robot_side/state");
  bench.move(1, 2.0);
  bench.period();
  EXPECT(bench.state() == 0.0 && bench.effort(0) == 0.0 && bench.effort(1) == -0.5);
  bench.move(1, 0.0);
  bench.send("~/commands", standing(2.0, -9.0));
  bench.period();
  EXPECT(bench.state() == 1.0 && bench.effort(0) == 2.0 && bench.effort(1) == -3.0);
  Numbers damaged = standing(1.0, 1.0);
  damaged.data.pop_back();
  bench.send("~/commands", damaged);
  for (int k = 0; k < 10; ++k) {bench.period();}
  EXPECT(bench.state() == 1.0 && bench.effort(0) == 2.0);
  bench.move(0, -4.0);
  bench.period();
  EXPECT(bench.state() == 2.0 && bench.effort(0) == 2.0 && bench.effort(1) == 0.0);
  bench.controller.state_interfaces_[2].forget();
  bench.period();
  EXPECT(bench.effort(0) == 0.0);
  EXPECT(bench.call<std_srvs::srv::Trigger>("~/reset"));
  bench.move(0, 0.0);
  bench.send("~/commands", standing(1.0, 1.0));
  bench.period();
  EXPECT(bench.state() == 1.0 && bench.effort(0) == 1.0);
  EXPECT(!bench.call<std_srvs::srv::Trigger>("~/reset"));
  EXPECT(bench.controller.on_deactivate(kState) == CallbackReturn::SUCCESS);
  EXPECT(bench.effort(0) == 0.0 && bench.effort(1) == 0.0);
  EXPECT(bench.controller.on_activate(kState) == CallbackReturn::SUCCESS);
  bench.period();
  EXPECT(bench.state() == 0.0 && bench.effort(0) == 0.0);
}

void stops_until_released()
{
  Bench bench;
  bench.configure_and_activate();
  bench.send("~/commands", standing(2.0, 2.0));
  bench.period();
  EXPECT(bench.call<std_srvs::srv::SetBool>("~/emergency_stop", true));
  for (int k = 0; k < 3; ++k) {
    bench.send("~/commands", standing(2.0, 2.0));
    bench.period();
    EXPECT(bench.state() == 3.0 && bench.effort(0) == 0.0);
  }
  EXPECT(!bench.call<std_srvs::srv::Trigger>("~/reset"));
  EXPECT(bench.call<std_srvs::srv::SetBool>("~/emergency_stop", false));
  bench.period();
  bench.send("~/commands", standing(2.0, 2.0));
  bench.period();
  EXPECT(bench.state() == 1.0 && bench.effort(0) == 2.0);
}

void tells_each_change_of_state_once()
{
  Bench bench;
  bench.configure_and_activate();
  bench.tell();
  bench.send("~/commands", standing(2.0, 2.0));
  for (int k = 0; k < 12; ++k) {bench.period(); bench.tell();}
  EXPECT(bench.call<std_srvs::srv::SetBool>("~/emergency_stop", true));
  for (int k = 0; k < 3; ++k) {bench.period(); bench.tell();}
}

void takes_its_base_from_a_topic_until_it_is_old()
{
  Bench bench(true);
  bench.configure_and_activate();
  EXPECT(bench.exported.size() == 14 && bench.exported[3]->get_name() == "robot_side/base/position.z");
  bench.send("~/commands", feedback(10.0));
  bench.period();
  EXPECT(bench.state() == 1.0 && bench.effort(0) == 0.0);
  nav_msgs::msg::Odometry odometry;
  odometry.pose.pose.position.z = -0.1;
  bench.send("~/odometry", odometry);
  for (int k = 0; k < 3; ++k) {
    bench.period();
    EXPECT(std::abs(bench.effort(0) - 1.0) < 1e-12 && *bench.exported[3]->get_optional() == -0.1);
  }
  bench.period();
  EXPECT(bench.effort(0) == 0.0 && std::isnan(*bench.exported[3]->get_optional()));
}

void begins_at_the_efforts_that_acted()
{
  Bench bench;
  bench.controller.get_node()->parameters["effort_state_interfaces"] = true;
  bench.configure_and_activate();
  EXPECT(bench.controller.state_interfaces_.size() == 6);
  EXPECT(bench.controller.state_interfaces_[4].get_name() == "one/effort");
  EXPECT(bench.controller.state_interfaces_[5].set_value(-1.5));
  EXPECT(bench.controller.on_deactivate(kState) == CallbackReturn::SUCCESS);
  EXPECT(bench.controller.on_activate(kState) == CallbackReturn::SUCCESS);
  bench.period();
  EXPECT(bench.effort(0) == 0.0 && bench.effort(1) == -1.5);
}

void takes_its_base_from_state_interfaces()
{
  Bench bench(true, true);
  bench.configure_and_activate();
  EXPECT(bench.controller.state_interfaces_.size() == 17);
  EXPECT(bench.controller.state_interfaces_[6].set_value(-0.1));
  EXPECT(bench.controller.state_interfaces_[10].set_value(1.0));
  bench.send("~/commands", feedback(10.0));
  bench.period();
  EXPECT(std::abs(bench.effort(0) - 1.0) < 1e-12);
  bench.controller.state_interfaces_[5].forget();
  bench.period();
  EXPECT(bench.effort(0) == 0.0);
}

void refuses_what_does_not_fit()
{
  Bench bench;
  bench.configure_and_activate();
  std::swap(bench.controller.command_interfaces_[0], bench.controller.command_interfaces_[1]);
  EXPECT(bench.controller.on_activate(kState) == CallbackReturn::ERROR);
  for (const auto & [name, value] : std::map<std::string, std::any>{
      {"effort_limits_nm", std::vector<double>{}}, {"timeout_s", 0.0},
      {"joints", std::vector<std::string>{}}, {"odometry_timeout_s", -1.0},
      {"continuous_joints", std::vector<std::string>{"three"}},
      {"base_state_interfaces", std::vector<std::string>{"one"}}})
  {
    Bench other;
    other.controller.get_node()->parameters[name] = value;
    EXPECT(other.controller.on_configure(kState) == CallbackReturn::ERROR);
  }
}

}  // namespace

int main()
{
  follows_and_damps_and_leaves_zero();
  stops_until_released();
  tells_each_change_of_state_once();
  takes_its_base_from_a_topic_until_it_is_old();
  begins_at_the_efforts_that_acted();
  takes_its_base_from_state_interfaces();
  refuses_what_does_not_fit();
  std::printf("all as it should be\n");
}
