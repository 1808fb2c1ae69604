//! Changes of lines that are ordered while a run goes on: what was written, against the hops that there are.

use crate::check::check_delay;
use crate::file::fault::{Telling, did_you_mean};
use crate::file::field::Reader;
use crate::file::hops::parts;
use crate::file::link::{ChangeSpec, GilbertElliottWord, RandomWord};
use crate::file::written::{Value, Written};
use crate::{Change, LineChange, Scenario, ScenarioError};
use weir_core::{Direction, Duration, Time};

/// A change of the line of a hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HopChange {
    /// Number of the hop, up before down.
    pub hop: usize,
    /// The change.
    pub to: LineChange,
}

/// The changes that `written` orders: a table of hops by their full names, such as `down/modem`, in which each has the
/// keys of a change of a link file, but for `at`. Orders are JSON, and what is wrong with one is told in its words.
///
/// # Errors
/// What is wrong with it, in one sentence: no table, a hop that `scenario` does not have, a value that is none.
pub fn read_ordered(written: &Written, scenario: &Scenario) -> Result<Vec<HopChange>, String> {
    let Value::Table(hops) = &written.value else {
        return Err(format!(
            r#"{}: write an object of hops and their changes, such as {{"down/modem": {{"rate": "5mbit"}}}}"#,
            written.shown()
        ));
    };
    if hops.is_empty() {
        return Err("nothing changes: name a hop, and what changes there".to_owned());
    }
    let mut found = Vec::new();
    for (name, said) in hops {
        let hop = number_of(name, scenario)?;
        let telling = Telling { place: name, names: &[] };
        if said.get("at").is_some() {
            return Err(format!("{name}: at: it changes at once: leave `at` out"));
        }
        check_json(said).map_err(|error| format!("{name}: {error}"))?;
        let mut whole = said.clone();
        whole.set("at", "0s".into());
        let spec: ChangeSpec = Reader::read(&whole).map_err(|faults| telling.sentence(faults))?;
        let rate =
            &scenario.path.up.iter().chain(&scenario.path.down).nth(hop).expect("it is known").rate;
        for Change { to, .. } in parts(&spec) {
            let checked = to.check(rate).and_then(|()| match to {
                LineChange::DelayNs(delay_ns) => check_delay(delay_ns, MAX_ORDERED_DELAY),
                _ => Ok(()),
            });
            checked.map_err(|error| format!("{name}: {error}"))?;
            found.push(HopChange { hop, to });
        }
    }
    Ok(found)
}

/// What is said of a hop, where a link file, which is TOML, would be written otherwise than an order.
fn check_json(said: &Written) -> Result<(), String> {
    let Value::Table(changes) = &said.value else {
        return Err(format!(
            r#"{}: write an object of what changes, such as {{"rate": "5mbit"}}"#,
            said.shown()
        ));
    };
    let nothing = |(key, value): &(String, Written)| {
        value.value == Value::Nothing || (key == "down" && value.value == Value::Bool(false))
    };
    if changes.iter().all(nothing) {
        return Err(
            r#"nothing changes: give "rate" (which ends "down"), "delay", "loss", or "down": true"#
                .to_owned(),
        );
    }
    let Some(loss) = said.get("loss").filter(|loss| loss.value != Value::Nothing) else {
        return Ok(());
    };
    let models = [RandomWord::WORDS, GilbertElliottWord::WORDS].concat();
    match loss.get("model").map(|model| &model.value) {
        Some(Value::Text(model)) if models.contains(&model.as_str()) => Ok(()),
        Some(_) => {
            let models: Vec<String> = models.iter().map(|model| format!(r#""{model}""#)).collect();
            Err(format!(r#"loss: "model": write {}"#, models.join(" or ")))
        }
        None => Err(format!(
            r#"loss: {}: write an object such as {{"model": "random", "probability": 0.01}}"#,
            loss.shown()
        )),
    }
}

/// Forty times what a geostationary satellite takes: what is longer was mistyped, and would stop the line.
const MAX_ORDERED_DELAY: Duration = Duration::from_secs(10);

/// The number of the hop of that full name, up before down.
fn number_of(name: &str, scenario: &Scenario) -> Result<usize, String> {
    let hops = Direction::ALL
        .into_iter()
        .flat_map(|direction| scenario.hops(direction).iter().map(move |hop| (direction, hop)));
    let names: Vec<String> = hops.map(|(direction, hop)| hop.full_name(direction)).collect();
    names.iter().position(|known| known == name).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = did_you_mean(name, &known);
        format!("no hop is called `{name}`{near} (known: {})", known.join(", "))
    })
}

impl Scenario {
    /// The scenario in which `changes` happen at `at`, beside those that it has.
    ///
    /// # Errors
    /// If a line cannot be changed so.
    pub fn changed(&self, changes: &[HopChange], at: Time) -> Result<Self, ScenarioError> {
        let mut changed = self.clone();
        for &HopChange { hop, to } in changes {
            let up = changed.path.up.len();
            let hop = match hop.checked_sub(up) {
                None => &mut changed.path.up[hop],
                Some(down) => &mut changed.path.down[down],
            };
            let at_ns = at.as_nanos();
            let place = hop.changes.partition_point(|before| before.at_ns <= at_ns);
            hop.changes.insert(place, Change { at_ns, to });
        }
        changed.check()?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hop, LineRate, LossParams};

    /// 10 Mbit/s up, a recording down.
    fn scenario() -> Scenario {
        let up = Hop::new("modem", "pfifo", LineRate::Bps(10_000_000));
        let down = Hop::new("cell", "pfifo", LineRate::Trace("t".to_owned()));
        Scenario::over("t", 1_000_000_000, up, down)
    }

    fn ordered(json: &str) -> Result<Vec<HopChange>, String> {
        read_ordered(
            &Written::from(serde_json::from_str::<serde_json::Value>(json).unwrap()),
            &scenario(),
        )
    }

    #[test]
    fn hops_have_the_words_of_link_files() {
        let random = LossParams::Random { probability: 0.5 };
        assert_eq!(
            ordered(
                r#"{"down/cell": {"delay": "40ms", "loss": {"model": "random", "probability": 0.5}},
                    "up/modem": {"rate": "5mbit"}}"#
            ),
            Ok(vec![
                HopChange { hop: 1, to: LineChange::DelayNs(40_000_000) },
                HopChange { hop: 1, to: LineChange::Loss(random) },
                HopChange { hop: 0, to: LineChange::RateBps(5_000_000) },
            ])
        );
        assert_eq!(
            ordered(r#"{"up/modem": {"down": true}}"#),
            Ok(vec![HopChange { hop: 0, to: LineChange::Down }])
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence_with_its_hop() {
        let says = |json| ordered(json).unwrap_err();
        assert_eq!(
            says(r#"{"up/modme": {"rate": "5mbit"}}"#),
            "no hop is called `up/modme`, did you mean `up/modem`? (known: up/modem, down/cell)"
        );
        assert_eq!(
            says(r#"{"up/modem": {"rate": 5}}"#),
            "up/modem: rate: `5` is a rate without its unit: write `5mbit` or `5kbit`"
        );
        assert_eq!(
            says(r#"{"up/modem": {}}"#),
            r#"up/modem: nothing changes: give "rate" (which ends "down"), "delay", "loss", or "down": true"#
        );
        assert_eq!(says(r#"{"up/modem": {"down": false}}"#), says(r#"{"up/modem": {}}"#));
        assert_eq!(
            says(r#"{"up/modem": {"loss": 0.5}}"#),
            r#"up/modem: loss: 0.5: write an object such as {"model": "random", "probability": 0.01}"#
        );
        assert_eq!(
            says(r#"{"up/modem": {"loss": {"model": "often"}}}"#),
            r#"up/modem: loss: "model": write "random" or "gilbert_elliott""#
        );
        assert_eq!(
            says(r#"{"up/modem": {"at": "5s", "rate": "5mbit"}}"#),
            "up/modem: at: it changes at once: leave `at` out"
        );
        assert_eq!(
            says(r#"{"up/modem": {"delay": "40s"}}"#),
            "up/modem: delay 40s: write a propagation delay of up to 10s, such as `40ms`"
        );
        assert_eq!(
            says(r#"{"down/cell": {"rate": "5mbit"}}"#),
            "down/cell: only a line of constant `rate` can be given another"
        );
        assert_eq!(says("{}"), "nothing changes: name a hop, and what changes there");
        assert_eq!(
            says("[5]"),
            r#"[5]: write an object of hops and their changes, such as {"down/modem": {"rate": "5mbit"}}"#
        );
        assert_eq!(
            says(r#"{"up/modem": 5}"#),
            r#"up/modem: 5: write an object of what changes, such as {"rate": "5mbit"}"#
        );
    }

    #[test]
    fn a_scenario_has_its_changes_in_order_of_time() {
        let slower = HopChange { hop: 0, to: LineChange::RateBps(5_000_000) };
        let farther = HopChange { hop: 1, to: LineChange::DelayNs(7) };
        let ms = Time::from_millis;
        let changed = scenario().changed(&[slower, farther], ms(30)).unwrap();
        let changed = changed.changed(&[slower], ms(20)).unwrap();
        let times = changed.path.up[0].changes.iter().map(|change| change.at_ns);
        assert_eq!(times.collect::<Vec<_>>(), [20_000_000, 30_000_000]);
        assert_eq!(changed.path.down[0].changes, [Change { at_ns: 30_000_000, to: farther.to }]);

        let recorded = HopChange { hop: 1, to: LineChange::RateBps(5_000_000) };
        assert_eq!(
            scenario().changed(&[recorded], ms(30)).unwrap_err().to_string(),
            "path down, hop `cell`: change at 30ms: only a line of constant `rate` can be given another"
        );
    }
}
