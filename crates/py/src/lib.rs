//! The Python module `weirlab._native`: conversion, GIL release, error mapping, no logic.
//!
//! Its typed face is `python/weirlab/_native.pyi`.

// The macros of PyO3 expand to code that these lints do not like.
#![allow(unsafe_code, reason = "PyO3's macros")]
#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod conformance;
mod describe;
mod errors;
mod lab;
mod measure;
mod packets;
mod ping;
mod scenario;
mod serve;
mod shape;
mod simulate;
mod whole;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::conformance::conformance;
    #[pymodule_export]
    use super::describe::{
        bounds, check_queue, check_trace, congestion_controls, disciplines, dscp_name,
        expand_queue, markers, methods, nearest, parse_dscp, rng_name, services, tables,
        tcp_profiles, version,
    };
    #[pymodule_export]
    use super::errors::InputError;
    #[pymodule_export]
    use super::errors::NativeError;
    #[pymodule_export]
    use super::lab::{check_lab, lab};
    #[pymodule_export]
    use super::measure::{
        Ramp, Server, SpeedTest, bufferbloat_grades, bufferbloat_score, cautions, find_server,
        fit_test, measure, met_limit_mbps, offer, plan_test, read_secret, record_method,
        run_method, unmeasured,
    };
    #[pymodule_export]
    use super::packets::simulate_packets;
    #[pymodule_export]
    use super::ping::ping;
    #[pymodule_export]
    use super::scenario::{
        Resolved, ResolvedConfiguration, join_paths, line_rate, load_link, load_test, mean_rate,
        name_files, named_in, path_shares, read_quantity, read_rate, read_scenario,
        read_scenario_in, read_scenario_or_test, read_spec, read_time, remarks, resolve_scenario,
        scenario_schema, shipped_links, shipped_tests,
    };
    #[pymodule_export]
    use super::serve::serve;
    #[pymodule_export]
    use super::shape::{
        Prover, choose_shaper, host_and_port, host_in, read_shaper_config, read_shaper_rules,
        read_shaper_settings, replay_shaper, shape, shaper_decision_line, shaper_metrics,
        shaper_rules_text, shaper_schemas, shaper_status, shaper_view_words, shipped_rules,
        stop_shaper,
    };
    #[pymodule_export]
    use super::simulate::{check_simulation, read_table, simulate, simulate_rows, thinned};
}
