//! Declaration of shapers in a scenario, as a table or in words such as `auto mode bandwidth`.

use weir_core::{Direction, Duration};
use weir_rate_control::MAX_LEARNED_AGE_S;

use crate::file::fault::Telling;
use crate::file::field::{Field, Form, Keys, Reader, blank, choice, spec};
use crate::file::link::{FramingChoice, FramingWord};
use crate::file::plain::{AtLeastOne, ListOf, Named, OneOrMore, Probability};
use crate::file::quantity::{LineRate, Nanoseconds, ShaperRate};
use crate::file::written::{Value, Written, table};

spec! {
    /// A shaper at the client's end of the line: in front of it on the way up, behind it on the way down.
    ShaperSpec {
        /// Who sets its rates: `auto` (Weir's controller, told nothing), `cake-autorate` (the published law, told
        /// `min`, `base` and `max`), `fixed`.
        control: ControlWord,
        /// For `auto`: `ping` keeps delays short, `bandwidth` uses all of the rate.
        mode: ModeWord = ModeWord::Ping,
        /// Directions that it shapes, one or both.
        directions: OneOrMore<Direction> = OneOrMore::Several(Direction::ALL.to_vec()),
        /// Rates of the upload that it is told.
        up: RatesSpec = blank(),
        /// Rates of the download that it is told.
        down: RatesSpec = blank(),
        /// Its probes: `icmp` (round trips), `udp` (a server that tells its time: both ways), `none`.
        probe: ShaperProbeWord = ShaperProbeWord::Icmp,
        /// Whether the round trips of the user's own connections count as well.
        passive: bool = true,
        /// Who answers the probes.
        reflectors: AtLeastOne<ReflectorSpec> = ListOf([1, 3, 6].map(ReflectorSpec::after_ms).into()),
        /// How it counts packets.
        framing: FramingChoice = FramingChoice::Name(FramingWord::Ethernet),
        /// While these last nobody looks after it, as if the machine slept.
        sleeps: Vec<SpanSpec> = Vec::new(),
        /// For `auto`: what an earlier run learned of the line, with which this one begins, as after a restart.
        learned: Option<LearnedSpec>,
    }
    check |shaper| match (&shaper.learned, shaper.control) {
        (Some(_), ControlWord::CakeAutorate | ControlWord::Fixed) => Err(format!(
            "`learned` with `{}`: only `auto` learns; leave it out",
            shaper.control.word()
        )),
        _ => Ok(()),
    };
}

choice! {
    /// Who sets a shaper's rates.
    ControlWord {
        /// Weir's controller.
        Auto = "auto",
        /// The published law of cake-autorate.
        CakeAutorate = "cake-autorate",
        /// Nobody: they stay.
        Fixed = "fixed",
    }
}

choice! {
    /// Goal of Weir's controller.
    ModeWord {
        /// Short delays.
        Ping = "ping",
        /// All of the rate.
        Bandwidth = "bandwidth",
    }
}

choice! {
    /// Probes of a shaper.
    ShaperProbeWord {
        /// ICMP echoes.
        Icmp = "icmp",
        /// UDP to a server that tells its time.
        Udp = "udp",
        /// Nothing.
        None = "none",
    }
}

spec! {
    /// Settings of a shaper for one direction.
    RatesSpec {
        /// For `fixed`: the rate, or a share of the line's such as `95%`; for `auto`: that direction stays at it, and
        /// the other is controlled.
        rate: Option<ShaperRate>,
        /// For `cake-autorate`: the least rate.
        min: Option<LineRate>,
        /// For `cake-autorate`: the usual rate.
        base: Option<LineRate>,
        /// For `cake-autorate`: the greatest rate; for `auto` too, if anything.
        max: Option<LineRate>,
    }
}

spec! {
    /// What an earlier run of a shaper learned of its line and kept.
    LearnedSpec {
        /// Usual capacity of the upload, or a share of the line's such as `95%`.
        up: Option<ShaperRate>,
        /// Usual capacity of the download, or a share of the line's such as `95%`.
        down: Option<ShaperRate>,
        /// How long ago that was; after more than 30 days (`2592000s`) it is not used.
        age: Nanoseconds = Nanoseconds(0),
    }
    check |learned| match (&learned.up, &learned.down) {
        (None, None) => Err("give `up`, `down` or both: what the line carried".to_owned()),
        _ => Ok(()),
    };
}

spec! {
    /// A machine that answers a shaper's probes.
    ReflectorSpec {
        /// Delay between it and the far end of the link, each way.
        delay: Nanoseconds = Nanoseconds(0),
        /// Share of the probes that it never answers.
        loss: Probability = Probability(0.0),
        /// Other troubles, and when they happen.
        troubles: Vec<TroubleSpec> = Vec::new(),
    }
}

impl ReflectorSpec {
    fn after_ms(delay_ms: u64) -> Self {
        Self {
            delay: Nanoseconds(delay_ms * 1_000_000),
            loss: Probability(0.0),
            troubles: Vec::new(),
            keys: Keys::of(&["delay"]),
        }
    }
}

spec! {
    /// Something that goes wrong with a reflector for a while.
    TroubleSpec {
        /// It does not answer.
        silent: bool = false,
        /// It answers so much later.
        late: Option<Nanoseconds>,
        /// It answers later by anything up to this.
        erratic: Option<Nanoseconds>,
        /// The machine's clock is set forward by so much.
        clock: Option<Nanoseconds>,
        /// When it begins.
        start: Nanoseconds,
        /// When it ends.
        stop: Nanoseconds,
    }
    check |trouble| {
        let times = [trouble.late, trouble.erratic, trouble.clock];
        match times.iter().flatten().count() + usize::from(trouble.silent) {
            1 => Ok(()),
            _ => Err("give one of `silent`, `late`, `erratic`, `clock`".to_owned()),
        }
    };
}

spec! {
    /// From a time to another.
    SpanSpec {
        /// When it begins.
        start: Nanoseconds,
        /// When it ends.
        stop: Nanoseconds,
    }
}

impl LearnedSpec {
    fn name(&self) -> String {
        let mut said = vec!["learned".to_owned()];
        for (way, capacity) in [("up", &self.up), ("down", &self.down)] {
            said.extend(capacity.as_ref().map(|capacity| match capacity {
                ShaperRate::Rate(bps) => format!("{way} {bps}"),
                ShaperRate::Share(share) => format!("{way} {share}"),
            }));
        }
        if self.age.0 > 0 {
            said.push(format!("{} ago", Duration::from_nanos(self.age.0)));
        }
        said.join(" ")
    }

    /// What was learned of a direction, unless it is too old to begin with.
    #[must_use]
    pub fn capacity(&self, direction: Direction) -> Option<&ShaperRate> {
        let capacity = match direction {
            Direction::Up => self.up.as_ref(),
            Direction::Down => self.down.as_ref(),
        };
        capacity.filter(|_| self.age.0 <= Duration::from_secs(MAX_LEARNED_AGE_S).as_nanos())
    }
}

/// A shaper in words, or as a table.
pub type ShaperChoice = Named<String, ShaperSpec>;

impl ShaperChoice {
    /// The shaper that was written; `None` for `none`.
    ///
    /// # Errors
    /// If its words are none that a shaper knows, or have wrong values.
    pub fn spec(&self) -> Result<Option<ShaperSpec>, String> {
        match self {
            Self::Given(spec) => Ok(Some((**spec).clone())),
            Self::Name(written) => from_words(written),
        }
    }

    /// The name that tells it apart from others, for people.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Name(written) => written.clone(),
            Self::Given(spec) => spec.name(),
        }
    }
}

/// Reads a control with words, such as `auto mode bandwidth`.
fn from_words(written: &str) -> Result<Option<ShaperSpec>, String> {
    let mut words = written.split_whitespace();
    let control = words.next().unwrap_or_default();
    let mut said = vec![("control".to_owned(), control.into())];
    let words: Vec<&str> = words.collect();
    if control == NO_SHAPER && words.is_empty() {
        return Ok(None);
    }
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let value = match word {
            "passive" => Some(true.into()),
            "mode" | "probe" => words.next().map(Written::from),
            "up" | "down" => words.next().map(rates),
            _ => None,
        };
        let Some(value) = value else {
            return Err(format!(
                "shaper `{written}`: `{word}` needs a value, or is none of its words (mode, probe, up, down, \
                 passive)"
            ));
        };
        said.retain(|(known, _)| known != word);
        said.push((word.to_owned(), value));
    }
    let place = format!("shaper `{written}`");
    Reader::read(&Written::of(Value::Table(said)))
        .map(Some)
        .map_err(|faults| Telling { place: &place, names: &[] }.sentence(faults))
}

/// `20mbit` or `95%`, or least, usual and greatest rate as `5mbit:20mbit:80mbit`.
fn rates(word: &str) -> Written {
    let parts: Vec<&str> = word.split(':').collect();
    if parts.len() == 1 {
        return table([("rate", word.into())]);
    }
    let named = ["min", "base", "max"].into_iter().zip(parts);
    Written::of(Value::Table(named.map(|(name, part)| (name.to_owned(), part.into())).collect()))
}

impl ShaperSpec {
    /// Rates of a direction that it is told.
    #[must_use]
    pub const fn rates(&self, direction: Direction) -> &RatesSpec {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Whether it shapes a direction.
    #[must_use]
    pub fn shapes(&self, direction: Direction) -> bool {
        self.directions.all().contains(&direction)
    }

    fn name(&self) -> String {
        let mut said = vec![self.control.word().to_owned()];
        let auto = self.control == ControlWord::Auto;
        if auto && self.mode == ModeWord::Bandwidth {
            said.push("mode bandwidth".to_owned());
        }
        if self.control != ControlWord::Fixed && self.probe != ShaperProbeWord::Icmp {
            said.push(format!("probe {}", self.probe.word()));
        }
        if self.passive {
            said.push("passive".to_owned());
        }
        said.extend(self.learned.as_ref().map(LearnedSpec::name));
        for way in Direction::ALL {
            match &self.rates(way).rate {
                Some(ShaperRate::Rate(bps)) if auto => said.push(format!("{} {bps}", way.word())),
                Some(ShaperRate::Share(share)) if auto => {
                    said.push(format!("{} {share}", way.word()));
                }
                _ => {}
            }
        }
        said.join(" ")
    }

    /// Everything that was written of it, in its order; of a list of tables how many they are.
    pub(crate) fn long_name(&self) -> String {
        let mut said = Vec::new();
        flatten(&self.write(Form::Words), &mut said);
        // Whoever sets the rates stands for itself.
        if let Some(place) = said.iter().position(|word| word == "control") {
            said.remove(place);
        }
        said.join(" ")
    }
}

/// Appends keys and values in words.
fn flatten(written: &Written, said: &mut Vec<String>) {
    match &written.value {
        Value::Table(entries) => {
            for (key, value) in entries {
                said.push(key.clone());
                flatten(value, said);
            }
        }
        Value::List(parts) if parts.iter().any(|part| matches!(part.value, Value::Table(_))) => {
            said.push(parts.len().to_string());
        }
        Value::List(parts) => {
            said.push(parts.iter().map(Written::plain).collect::<Vec<_>>().join("+"));
        }
        _ => said.push(written.plain()),
    }
}

/// The word for no shaper.
pub(crate) const NO_SHAPER: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapers_that_learned_other_things_have_other_names() {
        let name = |learned: Written| {
            let said = table([("control", "auto".into()), ("learned", learned)]);
            Reader::read::<ShaperSpec>(&said).unwrap().name()
        };
        assert_eq!(name(table([("up", "50%".into())])), "auto passive learned up 50%");
        let told = [("up", "20mbit".into()), ("down", "95%".into()), ("age", "7200s".into())];
        assert_eq!(name(table(told)), "auto passive learned up 20000000 down 95% 7200s ago");
    }
}
