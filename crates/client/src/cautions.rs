//! Why a test of a path should not be trusted, or only in part: what its own notes tell.

use serde_json::{Map, Value};
use weir_speedtest::bufferbloat::met_limit;

/// Cautions that a measurement's notes for the manifest tell, one sentence each.
#[must_use]
pub fn cautions(notes: &Map<String, Value>) -> Vec<String> {
    let number = |place: &[&str]| number_in(notes, place);
    let mut said = Vec::new();
    let cpu = number(&["own_cpu_percent"]);
    if cpu > MAX_CPU_PERCENT {
        said.push(format!(
            "this program used {cpu:.0} % of a processor: the machine may be the bottleneck"
        ));
    }
    let limited = number(&["echoes", "limited"]);
    if limited > 0.0 {
        said.push(format!(
            "the server left {limited} pings unanswered because there were too many: they count as lost"
        ));
    }
    if has_met_others(notes) {
        said.push(
            "other tests from this address ran meanwhile: they shared the line, and each got less than it carries"
                .to_owned(),
        );
    }
    for server in servers(notes) {
        said.extend(cautions_of_server(server));
    }
    let ramps = notes.get("ramps").and_then(Value::as_array);
    for ramp in ramps.into_iter().flatten().filter(|ramp| ramp["full_ns"].is_null()) {
        said.push(format!(
            "{} flows did not fill the line in phase {}: its throughput is a lower bound, and so is its latency",
            ramp["flows"],
            ramp["phase"].as_str().unwrap_or_default()
        ));
    }
    said
}

/// The least that a server of a measurement lets pass, in Mbit/s, if loads that carried so much may have met that and not the
/// line's limit, or shared it with another test.
#[must_use]
pub fn met_limit_mbps(
    notes: &Map<String, Value>,
    down_mbps: Option<f64>,
    up_mbps: Option<f64>,
) -> Option<f64> {
    let limits = servers(notes).map(|server| number_in(server, &["limits", "rate_bps"]));
    let least = limits.filter(|bps| *bps > 0.0).min_by(f64::total_cmp).map(|bps| bps / 1e6);
    met_limit(least, has_met_others(notes), down_mbps, up_mbps)
}

fn has_met_others(notes: &Map<String, Value>) -> bool {
    notes.get("echoes").is_some_and(|echoes| echoes["met_others"] == true)
}

/// The servers of a measurement. The first records name the only one otherwise, without its clock's drift.
fn servers(notes: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let all = notes.get("servers").and_then(Value::as_array);
    let only = notes.get("server");
    all.into_iter().flatten().chain(only).filter_map(Value::as_object)
}

fn cautions_of_server(server: &Map<String, Value>) -> Vec<String> {
    let mut said = Vec::new();
    let name = server.get("name").and_then(Value::as_str).unwrap_or("?");
    let [ns, within_ns] = ["ns", "within_ns"].map(|key| number_in(server, &["clock_drift", key]));
    if ns.abs() > MAX_DRIFT_NS + within_ns {
        said.push(format!(
            "the clocks of this machine and of server `{name}` ran apart by {:.1} ms: delays of UDP loads are off by up to \
             as much",
            ns.abs() / 1e6
        ));
    }
    let rate_bps = number_in(server, &["limits", "rate_bps"]);
    if rate_bps > 0.0 {
        said.push(format!(
            "server `{name}` gives this address {} Mbit/s at most: that may be the bottleneck",
            rate_bps / 1e6
        ));
    }
    said
}

/// The number at that place; 0 if there is none.
fn number_in(holder: &Map<String, Value>, place: &[&str]) -> f64 {
    let found = place.split_first().and_then(|(first, rest)| {
        rest.iter().try_fold(holder.get(*first)?, |holder, name| holder.get(name))
    });
    found.and_then(Value::as_f64).unwrap_or(0.0)
}

/// Of one processor.
const MAX_CPU_PERCENT: f64 = 80.0;
/// Less than what people hear or play by.
const MAX_DRIFT_NS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_limit_of_servers_is_the_least_of_them() {
        let of = |notes: Value, down| met_limit_mbps(notes.as_object().unwrap(), Some(down), None);
        let servers = [
            json!({"limits": {"rate_bps": null}}),
            json!({"limits": {"rate_bps": 50_000_000}}),
            json!({"limits": {"rate_bps": 12_500_000}}),
        ];
        assert_eq!(of(json!({"servers": servers}), 11.0), Some(12.5));
        assert_eq!(of(json!({"servers": servers}), 3.0), None);
        assert_eq!(
            of(json!({"servers": servers, "echoes": {"met_others": true}}), 3.0),
            Some(12.5)
        );
        assert_eq!(of(json!({"servers": servers[..1]}), 11.0), None);
        assert_eq!(of(json!({}), 11.0), None);
    }

    fn told(notes: &Value) -> Vec<String> {
        cautions(notes.as_object().unwrap())
    }

    #[test]
    fn each_caution_has_its_reason() {
        let full = json!({"phase": "download", "direction": "down", "flows": 4, "full_ns": 6});
        let open = json!({"phase": "upload", "direction": "up", "flows": 16, "full_ns": null});
        let notes = json!({
            "own_cpu_percent": 80.1,
            "echoes": {"limited": 3, "met_others": true},
            "servers": [
                {"name": "near:8080", "clock_drift": {"ns": -4_200_000, "within_ns": 900_000}},
                {"name": "far:8080", "limits": {"rate_bps": 12_500_000}},
            ],
            "ramps": [full, open],
        });
        assert_eq!(
            told(&notes),
            [
                "this program used 80 % of a processor: the machine may be the bottleneck",
                "the server left 3 pings unanswered because there were too many: they count as lost",
                "other tests from this address ran meanwhile: they shared the line, and each got less than it carries",
                "the clocks of this machine and of server `near:8080` ran apart by 4.2 ms: delays of UDP loads are off by up \
                 to as much",
                "server `far:8080` gives this address 12.5 Mbit/s at most: that may be the bottleneck",
                "16 flows did not fill the line in phase upload: its throughput is a lower bound, and so is its \
                 latency",
            ]
        );
    }

    #[test]
    fn without_a_reason_there_is_none() {
        let notes = json!({
            "own_cpu_percent": 80.0,
            "echoes": {"limited": 0, "met_others": false},
            "servers": [
                {"clock_drift": {"ns": 1_900_000, "within_ns": 900_000}, "limits": {"rate_bps": null}},
            ],
            "ramps": [{"phase": "download", "flows": 4, "full_ns": 6}],
        });
        assert!(told(&notes).is_empty());
        assert!(told(&json!({})).is_empty());
    }
}
