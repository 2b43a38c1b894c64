"""Parameters and nodes that earlier versions had, with the advice in the error that rejects them."""

from __future__ import annotations

RENAMED_NODES = {"kino_dynamic_planner": "kinodynamic_planner"}
"""Former section of parameter files -> the node's present name."""

CONSTANT = "is a constant now: remove the line"

PUSHES = "is part of 'pushes' now, four numbers a push: time, s, and impulse x, y, z, N·s"

REMOVED: dict[str, str] = {
    "locked_joint_positions": "is part of 'locked_joints' now: name=position",
    **dict.fromkeys(
        ("flat_feet_frames", "flat_feet_half_sizes_m", "flat_feet_centers_m"),
        "is part of 'soles' now: 'left_sole half_length_m=0.1 half_width_m=0.06 x_m=0 y_m=0 z_m=0'",
    ),
    # gait_planner
    "foot_center_m": "is gone: name a frame of the URDF at the centre of each foot in 'feet'",
    "base_height_m": "is gone: 'posture' gives the height of the base",
    "roll_feet": "is gone: planned feet always roll; remove the line",
    "balance": "is gone, with the virtual forces that it switched on: remove the line",
    "balance_gains": "is gone, with the virtual forces of 'balance': remove the line",
    "balance_damping": "is gone, with the virtual forces of 'balance': remove the line",
    "max_yaw_rate_rad_s": f"{CONSTANT} (0.8 rad/s)",
    "stand_time_s": f"{CONSTANT} (0.3 s)",
    "cmd_vel_timeout_s": f"{CONSTANT} (0.5 s)",
    "arrival_radius_m": f"{CONSTANT} (0.03 m)",
    "heading_gain": f"{CONSTANT} (2 1/s)",
    "velocity_time_constant_s": f"{CONSTANT} (0.15 s)",
    "max_yaw_acceleration_rad_s2": f"{CONSTANT} (4 rad/s^2)",
    "horizon_s": f"{CONSTANT} (0.3 s), and 'plan_period_s' is at most 0.28",
    "ground_time_constant_s": f"{CONSTANT} (0.1 s; in Python, simulation.mujoco_model.GroundSettings)",
    "lead_time_s": f"{CONSTANT} of the planners (0.02 s, 0.5 s of the kinodynamic planner)",
    "grid_s": f"{CONSTANT} (0.02 s, 0.035 s of the kinodynamic planner)",
    "odometry_age_limit_s": f"{CONSTANT} of the planners (0.1 s)",
    "restart_distance_m": f"{CONSTANT} (0.1 m, 0.05 m of the kinodynamic planner)",
    # simulated_robot
    "ground_impedance": f"{CONSTANT} (in Python, simulation.mujoco_model.GroundSettings)",
    "torque_delay_s": "is an argument of simulation.disturbed_robot.DisturbedRobot now: remove the line",
    "substeps": f"{CONSTANT} (1; in Python, an argument of MujocoRobot)",
    "command_timeout_s": f"{CONSTANT} (10 s)",
    "push_times_s": PUSHES,
    "push_impulses_ns": PUSHES,
    "push_duration_s": f"{CONSTANT} (0.1 s)",
    "push_body": "is the base now: remove the line (in Python, an argument of DisturbedRobot)",
    **dict.fromkeys(
        (
            *("gyroscope_noise_rad_s", "gyroscope_bias_rad_s", "accelerometer_noise_m_s2"),
            *("accelerometer_bias_m_s2", "position_noise_rad", "position_step_rad"),
            *("velocity_noise_rad_s", "effort_noise_nm", "effort_gain_error", "effort_friction_nm"),
            *("force_noise_n", "moment_noise_nm", "sensor_delay_s"),
        ),
        "is that of the preset 'sensors' of the simulated robot and a constant of the estimator now: "
        "remove the line (in Python, simulation.sensor_noise.SensorNoise and estimation.pipeline_settings)",
    ),
    "sensor_seed": f"{CONSTANT} (0; in Python, an argument of simulation.sensor_noise.SimulatedSensors)",
    # dynamics_estimator
    **dict.fromkeys(
        ("force_torque_sensors", "force_torque_frames", "force_torque_directions"),
        "is part of 'mounted_sensors' now: 'force_torque FR_KFE frame=.. direction=child_to_parent'",
    ),
    **dict.fromkeys(
        (
            *("angular_acceleration_noise_rad_s2", "joint_acceleration_noise_rad_s2"),
            *("residual_limit", "contact_on_share", "contact_off_share"),
            *("planned_on_share", "planned_off_share", "model_force_noise_n"),
        ),
        f"{CONSTANT} (in Python, estimation.pipeline_settings.PipelineSettings)",
    ),
    **dict.fromkeys(
        (
            *("gyroscope_density_rad_s_rthz", "accelerometer_density_m_s2_rthz"),
            *("foot_position_noise_m", "gravity_m_s2", "slip_speed_m_s", "imu_timeout_s"),
            *("stamp_limit_s", "coasting_limit_s", "still_time_s"),
            *("gyroscope_range_rad_s", "accelerometer_range_m_s2"),
        ),
        f"{CONSTANT} (in Python, estimation.odometry_settings.BaseOdometrySettings)",
    ),
    "wrench_timeout_s": f"{CONSTANT} (0.02 s)",
    "reliable_topics": "follows from 'mode': lockstep is reliable; remove the line",
    # controller and command_watchdog
    **dict.fromkeys(
        (
            *("plan_position_margin", "plan_speed_factor", "plan_acceleration_limit"),
            *("base_plan_jump", "base_plan_speed", "base_plan_acceleration"),
            *(
                "possible_position_margin",
                "possible_speed_factor",
                "possible_speed",
                "possible_base",
            ),
        ),
        f"{CONSTANT} (in Python, settings.plausibility)",
    ),
    # controller
    "contact_debounce_s": f"{CONSTANT} (0.005 s of source force; states of contact are taken as they are)",
    "contact_force_off_n": "is 0.4 times 'contact_force_on_n' now: remove the line",
    "pid_position_gain": f"{CONSTANT} of the papers' PID (20 N·m/rad)",
    "pid_velocity_gain": f"{CONSTANT} of the papers' PID (0.1 N·m·s/rad)",
    "pid_integral_gain": f"{CONSTANT} of the papers' PID (0.003 N·m/(rad·s))",
    **dict.fromkeys(
        (
            *("com_position_gain", "com_velocity_gain", "swing_foot_position_gain"),
            *("swing_foot_velocity_gain", "support_margin", "spin_weight"),
        ),
        f"{CONSTANT} (in Python, control.balance)",
    ),
    **dict.fromkeys(
        ("velocity_margin", "position_margin_rad", "position_stop_gain"),
        f"{CONSTANT} (in Python, control.limits)",
    ),
    "local_position_gain": "follows from 'joint_position_gain' and the joints' inertia: remove the line",
    "local_velocity_gain": "follows from 'joint_velocity_gain' and the joints' inertia: remove the line",
    **dict.fromkeys(
        (
            *("friction_polygon", "sliding", "consistency", "regularisation"),
            *("disturbance_price", "cone"),
        ),
        "is an option of contact models that only Python sets now (docs/contact_models.md): remove the line",
    ),
    "form": "is gone: viscous friction is implicit in the contact velocity; remove the line",
    "objective": "is gone, kinetic_energy is with the papers' experiments (papers/kinetic_energy.py): remove the line",
    **dict.fromkeys(
        (
            "ground_normal",
            "velocity_product_term",
            "penetration_gain",
            "sensed_delay",
            "limit_time_constant_s",
        ),
        "is set by experiments in Python only (ControllerSettings): remove the line",
    ),
    **dict.fromkeys(
        ("motor_resistance_ohm", "motor_torque_constant_nm_a"),
        "is part of 'motor_constant_nm_sqrt_w' now: torque constant over the root of the resistance",
    ),
    "measured_delay": "follows from 'command_delay_s': above 0, what is measured is added to it; remove the line",
    "odometry_jump_rad": f"{CONSTANT}: 2 rad for each m of 'odometry_jump_m'",
    "contact_timeout_s": f"{CONSTANT} (0.05 s)",
    "measured_contact": "is a value of 'contact_sources' now: force or state, instead of measured",
    "effort_gap_s": "is set by experiments in Python only (ControllerSettings; 0.1 s): remove the line",
    "refused_in_a_row": f"{CONSTANT} (3)",
    "period_s": f"{CONSTANT} of the command watchdog (0.002 s)",
    # kinodynamic_planner
    "passes": "is an argument of planning.kinodynamic.plan_motion and of `contact_id plan` (--passes) now",
    "consensus": "is an argument of planning.kinodynamic.plan_motion now: remove the line",
    "joint_limit_margin": f"{CONSTANT} (0.03 rad)",
    "step_turn_rad": f"{CONSTANT} (0.3 rad)",
    "floating_base": "is true for each robot that walks: remove the line",
    "ground_file": "is known to the nodes that look at the ground alone: remove the line",
}
"""Name -> what to do, as the end of a sentence that begins with the name; also for nodes that no longer have a
parameter that another node still has."""
