//! `weir-agent test`: Weir's own test of the path to a server, without a record.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use lexopt::prelude::*;
use serde_json::{Map, Value, json};
use weir_client::{
    ClientError, Figures, Loaded, MeasureRequest, Offer, TestFigures, TestPlan, TestWords,
    cautions, measure, met_limit_mbps, offer,
};
use weir_core::Time;
use weir_scenario::Phase;
use weir_sockets::Target;
use weir_speedtest::bufferbloat::{Grade, WORST_PHASE};

use crate::ending::Ending;
use crate::failure::Failure;
use crate::once::Once;
use crate::terminal::{print, tell};
use crate::words::{text, unexpected, value, whole};

pub(crate) fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let Some(mut asked) = parse(words)? else { return print(HELP) };
    asked.words.plan()?;
    let secret = asked.secret()?;
    let server = Target::find(&asked.host).map_err(ClientError::from)?;
    match offer(&server, secret.as_deref())? {
        Offer::Missing(why) => {
            let more = "this program runs Weir's own test alone, `weir test` others too";
            return Err(Failure::other(format!("{why}: {more}")));
        }
        Offer::Test(limits) => {
            if let Some(said) = asked.words.fit(&limits, asked.is_load_given)? {
                tell(&said);
            }
        }
    }
    let TestPlan { scenario, ramp } = asked.words.plan()?;
    let phases = scenario.phases.clone();
    let ending = Ending::watch()?;
    let mut told = Told { phases: &phases, quiet: asked.json, count: 0 };
    let mut sink = Figures::new(|now| {
        told.reached(now);
        if ending.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Asked { host, seed, json, .. } = asked;
    let (hosts, ramp) = (vec![host], Some(ramp));
    let request = MeasureRequest { hosts, ip: None, secret, scenario, seed, ramp };
    let outcome = measure(&request, &mut sink);
    let Some(figures) = sink.figures() else {
        outcome?;
        return Err(Failure::other("too little was measured for any figure"));
    };
    let said = warnings(sink.notes());
    let is_graded = figures.unmeasured.why().is_none();
    let limit_mbps = met_limit_mbps(sink.notes(), figures.down_mbps(), figures.up_mbps());
    let graded = is_graded.then(|| Graded::of(&figures, limit_mbps));
    let graded = graded.as_ref();
    print(&if json { as_json(&figures, graded, &said) } else { as_text(&figures, graded, &said) })?;
    match outcome {
        Ok(outcome) if outcome.complete => Ok(()),
        Ok(_) => Err(Failure {
            message: "interrupted: the figures are those of what was measured until then"
                .to_owned(),
            code: INTERRUPTED,
        }),
        Err(error) => Err(Failure::other(format!(
            "{error}; the figures are those of what was measured until then"
        ))),
    }
}

/// What went wrong as the test ran, and what its notes tell besides, as `weir test` has both.
fn warnings(notes: &Map<String, Value>) -> Vec<String> {
    let told = notes.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let told = told.filter_map(Value::as_str).map(str::to_owned);
    told.chain(cautions(notes)).collect()
}

/// What was asked for.
#[derive(Debug)]
struct Asked {
    host: String,
    words: TestWords,
    is_load_given: bool,
    auth: Option<PathBuf>,
    seed: u64,
    json: bool,
}

impl Asked {
    /// The server's secret, if it asks for one.
    fn secret(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.auth else { return Ok(None) };
        let secret =
            weir_sockets::read_secret(file).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Some(String::from_utf8_lossy(secret.as_bytes()).into_owned()))
    }
}

/// What was asked for; `None` if that is help.
fn parse(words: Vec<OsString>) -> Result<Option<Asked>, Failure> {
    let (mut host, mut auth, mut seed, mut json) = (None, None, 1, false);
    let mut is_load_given = false;
    let mut of_test = TestWords::default();
    let mut parser = lexopt::Parser::from_args(words);
    let mut once = Once::default();
    while let Some(word) = parser.next()? {
        if let Long(name) = word
            && name != "json"
        {
            once.see(name)?;
        }
        match word {
            Long("help") | Short('h') => return Ok(None),
            Long("idle") => of_test.idle = text(&mut parser, "idle")?,
            Long("load") => {
                of_test.load = text(&mut parser, "load")?;
                is_load_given = true;
            }
            Long("ping") => of_test.ping = text(&mut parser, "ping")?,
            Long("max-flows") => {
                of_test.max_flows = whole(&mut parser, "max-flows", 1, MAX_FLOWS)? as u32;
            }
            Long("cc") => of_test.cc = text(&mut parser, "cc")?,
            Long("auth") => auth = Some(value(&mut parser, "auth")?.into()),
            Long("seed") => seed = whole(&mut parser, "seed", 0, u64::MAX)?,
            Long("json") => json = true,
            Value(name) if host.is_none() => host = Some(name.string()?),
            other => return Err(unexpected(other, HELP)),
        }
    }
    let host = host.ok_or_else(|| Failure::usage("say whom: `weir-agent test HOST[:PORT]`"))?;
    Ok(Some(Asked { host, words: of_test, is_load_given, auth, seed, json }))
}

/// Tells which phase begins.
struct Told<'p> {
    phases: &'p [Phase],
    quiet: bool,
    count: usize,
}

impl Told<'_> {
    fn reached(&mut self, now: Time) {
        let Some(next) = self.phases.get(self.count) else { return };
        if now.as_nanos() >= next.start_ns {
            self.count += 1;
            if !self.quiet {
                let seconds = (next.end_ns - next.start_ns) as f64 / 1e9;
                tell(&format!("{} for {seconds} s", in_words(&next.name)));
            }
        }
    }
}

/// The grade of the greatest increase of all phases.
struct Graded {
    letter: &'static str,
    says: String,
}

impl Graded {
    /// The grade of a test that may have met a limit of the server, and never filled the line.
    fn of(figures: &TestFigures, limit_mbps: Option<f64>) -> Self {
        let worst_ms = figures.worst_increase_ms();
        let letter = Grade::of(worst_ms).letter;
        Self { letter, says: Grade::sentence(worst_ms, limit_mbps) }
    }
}

/// Figures and cautions for people, with the grade where all phases were measured.
fn as_text(figures: &TestFigures, graded: Option<&Graded>, cautions: &[String]) -> String {
    let idle = figures.idle;
    let mut text =
        format!("{:12}{:>11}{:>18}  goodput\n", "phase", "median RTT", "rise of mean RTT");
    text += &format!(
        "{:12}{:>8} ms{:18}{:30}  {} of {} pings lost\n",
        "idle",
        milliseconds(idle.median_ms),
        "",
        "",
        idle.lost,
        idle.sent
    );
    for Loaded { phase, pings, increase_ms, down_mbps, up_mbps } in &figures.loaded {
        let rates = [(down_mbps, "down"), (up_mbps, "up")];
        let rates: Vec<String> = rates
            .iter()
            .filter_map(|(mbps, way)| mbps.map(|mbps| format!("{mbps:.2} {way}")))
            .collect();
        text += &format!(
            "{:12}{:>8} ms{:>15} ms{:30}  {} of {} pings lost\n",
            in_words(phase),
            milliseconds(pings.median_ms),
            rise(*increase_ms),
            format!("  {} Mbit/s", rates.join(", ")),
            pings.lost,
            pings.sent
        );
    }
    if let Some(Graded { letter, says }) = graded {
        text += &format!("grade {letter}: {says}\n");
    }
    if let Some(why) = figures.unmeasured.why() {
        text += &format!("no grade: {why}\n");
    }
    for caution in cautions {
        text += &format!("but {caution}\n");
    }
    text
}

/// A round trip in ms, with a digit more where one would leave nothing.
fn milliseconds(ms: f64) -> String {
    if ms >= 1.0 { format!("{ms:.1}") } else { format!("{ms:.2}") }
}

/// By how many ms a round trip grew, with as many digits. What comes out as 0 has no minus.
fn rise(ms: f64) -> String {
    let text = if ms.abs() >= 1.0 { format!("{ms:+.1}") } else { format!("{ms:+.2}") };
    if text == "-0.00" { "+0.00".to_owned() } else { text }
}

/// The same under the names that `weir test --json` gives them.
fn as_json(figures: &TestFigures, graded: Option<&Graded>, cautions: &[String]) -> String {
    let by_phase = |figure: fn(&Loaded) -> f64| -> Map<String, Value> {
        figures.loaded.iter().map(|one| (one.phase.to_owned(), json!(figure(one)))).collect()
    };
    let score = |Graded { letter, says }: &Graded| {
        json!({
            "name": "bufferbloat",
            "formula": WORST_PHASE,
            "value": letter,
            "unit": "",
            "parts": by_phase(|one| (one.increase_ms * 1e3).round() / 1e3),
            "says": says,
        })
    };
    let said = json!({
        "grade": graded.map(|graded| graded.letter),
        "down_mbps": figures.down_mbps(),
        "up_mbps": figures.up_mbps(),
        "idle_ms": figures.idle.median_ms,
        "loaded_ms": by_phase(|one| one.pings.median_ms),
        "scores": graded.map(score).into_iter().collect::<Vec<_>>(),
        "warnings": cautions,
    });
    format!("{said:#}\n")
}

/// A phase in words.
fn in_words(phase: &str) -> &str {
    if phase == "load" { "both at once" } else { phase }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self { message: error.to_string(), code: if error.is_input() { 2 } else { 1 } }
    }
}

/// Exit code of what the user ended, as that of shells.
const INTERRUPTED: u8 = 130;
/// Each way.
const MAX_FLOWS: u64 = 24;

const HELP: &str = "Measures the path to HOST, on which `weir serve` or `weir-agent serve` runs, and grades it.

Usage: weir-agent test HOST[:PORT] [OPTIONS]

  --idle TIME      length of the phase without load; by default 4s
  --load TIME      length of each phase with load: download, upload, both at once; by default 8s
  --ping TIME      time between two pings; by default 10ms
  --max-flows N    flows at most, each way; by default 16
  --cc NAME        congestion control of all loads, `default` for each machine's own; by default cubic
  --auth FILE      file with the server's secret
  --seed N         seed of when pings begin; by default 1
  --json           prints the figures as JSON, nothing else
";

#[cfg(test)]
mod tests {
    use weir_client::{Pinged, Unmeasured};

    use super::*;

    fn figures() -> TestFigures {
        let pings = |median_ms| Pinged { sent: 400, lost: 1, mean_ms: median_ms, median_ms };
        let phase = |phase, median_ms, down_mbps, up_mbps| Loaded {
            phase,
            pings: pings(median_ms),
            increase_ms: median_ms - 20.0,
            down_mbps,
            up_mbps,
        };
        TestFigures {
            idle: pings(20.0),
            loaded: vec![
                phase("download", 85.25, Some(18.518), None),
                phase("load", 40.0, Some(17.0), Some(4.0)),
            ],
            unmeasured: Unmeasured::default(),
        }
    }

    #[test]
    fn what_went_wrong_is_told_before_what_the_notes_tell() {
        let notes = json!({ "warnings": ["`down 1` failed 5 times: 503"], "own_cpu_percent": 90 });
        let said = warnings(notes.as_object().unwrap());
        assert_eq!(said[0], "`down 1` failed 5 times: 503");
        assert!(said[1].contains("90 % of a processor") && said.len() == 2, "{said:?}");
    }

    #[test]
    fn a_person_reads_latency_goodput_and_the_grade() {
        let graded = Graded::of(&figures(), None);
        let text = as_text(&figures(), Some(&graded), &["the machine is small".to_owned()]);
        assert_eq!(
            text,
            "\
phase        median RTT  rise of mean RTT  goodput
idle            20.0 ms                                                  1 of 400 pings lost
download        85.2 ms          +65.2 ms  18.52 down Mbit/s             1 of 400 pings lost
both at once    40.0 ms          +20.0 ms  17.00 down, 4.00 up Mbit/s    1 of 400 pings lost
grade C: With the line full a ping takes 65 ms longer: calls and games suffer while the line is in use.
but the machine is small
"
        );
    }

    #[test]
    fn where_a_phase_was_not_measured_it_says_why_there_is_no_grade() {
        let silent = vec![("download".to_owned(), 5_000)];
        let unmeasured = Unmeasured { silent, ..Unmeasured::default() };
        let text = as_text(&TestFigures { unmeasured, ..figures() }, None, &[]);
        assert!(text.ends_with("\nno grade: nothing came for 5.0 s of the download\n"), "{text}");
    }

    #[test]
    fn a_line_of_which_the_server_lets_only_so_much_pass_is_not_called_full() {
        let graded = Graded::of(&figures(), Some(20.0));
        let text = as_text(&figures(), Some(&graded), &[]);
        let says =
            "grade C: With as much as the server lets pass (20 Mbit/s) a ping takes 65 ms longer";
        assert!(text.contains(says), "{text}");
    }

    #[test]
    fn json_has_the_names_of_weir_test() {
        let graded = Graded::of(&figures(), None);
        let said = as_json(&figures(), Some(&graded), &[]);
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["grade"], "C");
        assert_eq!((&said["down_mbps"], &said["up_mbps"]), (&json!(18.518), &json!(4.0)));
        assert_eq!(said["loaded_ms"], json!({"download": 85.25, "load": 40.0}));
        assert_eq!(said["scores"][0]["parts"], json!({"download": 65.25, "load": 20.0}));
        assert_eq!(said["warnings"], json!([]));
    }

    #[test]
    fn short_round_trips_have_a_digit_more() {
        assert_eq!([0.03, 0.999, 1.0, 85.25].map(milliseconds), ["0.03", "1.00", "1.0", "85.2"]);
        assert_eq!([-0.001, 0.04, -0.5, 20.0].map(rise), ["+0.00", "+0.04", "-0.50", "+20.0"]);
    }

    #[test]
    fn wrong_words_are_refused_with_code_2() {
        for (words, said) in [
            ("", "say whom: `weir-agent test HOST[:PORT]`"),
            ("h --max-flows 25", "max-flows `25`: write a whole number from 1 to 24"),
            ("h --load 2s", "load 2s: write 3s or more, since a line takes time to fill"),
            ("h --method ndt7", "`--method` is no option; `--help` lists all"),
        ] {
            let words = words.split_whitespace().map(OsString::from).collect();
            let planned = parse(words).and_then(|asked| Ok(asked.unwrap().words.plan()?));
            let failure = planned.err().map(|failure| (failure.message, failure.code));
            assert_eq!(failure, Some((said.to_owned(), 2)));
        }
    }
}
