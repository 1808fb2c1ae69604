//! Declaration of scenario files: a test on a link, with configurations to compare.

use crate::file::beside::BesideSpec;
use crate::file::field::{Definitions, Field, Form, Reader, blank, spec};
use crate::file::link::LinkSpec;
use crate::file::plain::{
    AtMost, ByName, Integer, ListOf, Named, OneOrMore, Tag, TextOf, Whole, Word,
};
use crate::file::quantity::{Nanoseconds, PositiveNanoseconds};
use crate::file::references;
use crate::file::shaper::ShaperChoice;
use crate::file::test::{MethodSpec, TcpSpec, TestSpec};
use crate::file::written::{Value, Written, table};
use weir_core::{Direction, IpVersion};

spec! {
    /// A scenario: a test on a link, with one or several queue specs to compare.
    ScenarioSpec {
        /// Name of the scenario; made of test and link if nothing is said.
        name: Option<String>,
        /// The name of a shipped test, a path to a test file, or the test itself.
        test: TestChoice,
        /// The name of a shipped link, a path to a link file, or the link itself; several to compare them.
        link: OneOrMore<LinkChoice>,
        /// Queue specs in `tc` syntax, one or several; each makes a run. `default` is the link's own.
        queue: OneOrMore<String> = OneOrMore::One(DEFAULT_QUEUE.to_owned()),
        /// Queue specs for the upload only, in place of `queue`; one or several.
        queue_up: Option<OneOrMore<String>>,
        /// Queue specs for the download only, in place of `queue`; one or several.
        queue_down: Option<OneOrMore<String>>,
        /// Congestion control of all loads, in place of that of `tcp`; several to compare them.
        cc: Option<OneOrMore<Word>>,
        /// Shapers to compare, one or several, each with each queue spec, which then is that of the shaper: `none`, a control such as
        /// `auto`, with words such as `auto mode bandwidth`, or the shaper itself.
        shaper: OneOrMore<ShaperChoice> = OneOrMore::One(ShaperChoice::Name(crate::file::shaper::NO_SHAPER.to_owned())),
        /// Seed of the first run.
        seed: Whole<0, MAX_SEED> = Whole(1),
        /// Runs for each configuration, each with the next seed.
        repeat: Whole<1, 100_000> = Whole(1),
        /// Values of the test's parameters.
        parameters: ByName<Integer> = ByName(Vec::new()),
        /// Speed tests beside those of the test.
        methods: Vec<MethodSpec> = Vec::new(),
        /// Tests that run beside it, each from its own start on; then all flows and probes have the names of their tests
        /// before their own.
        beside: AtMost<BesideSpec, MAX_BESIDE> = ListOf(Vec::new()),
        /// Lengths of phases in place of the test's.
        phases: PhaseLengthsSpec = blank(),
        /// TCP of all loads, where a load says nothing itself.
        tcp: TcpSpec = blank(),
        /// How often what is sampled.
        sampling: SamplingSpec = blank(),
        /// Each load starts up to so much later, each train of pings up to a period later, drawn from the seed: without
        /// it loads that start together stay in lock-step.
        start_jitter: Nanoseconds = Nanoseconds(50_000_000),
        /// Internet protocol.
        ip: IpNumber = IpNumber::V4,
        /// Assertions on every run, such as `latency.p99 < latency.median[idle] + 10ms`.
        assert: Vec<String> = Vec::new(),
        /// Free text about the runs, which their records keep.
        note: Note = TextOf(String::new()),
        /// Words by which the records are found again.
        tags: Tags = ListOf(Vec::new()),
    }
    check |scenario| match (&scenario.cc, &scenario.tcp.congestion_control) {
        (Some(_), Some(_)) => {
            Err("`cc` and `tcp.congestion_control` say the same: leave one of them out".to_owned())
        }
        _ => Ok(()),
    };
    refers references::of_scenario;
}

spec! {
    /// Notes of the user on runs.
    NoteSpec {
        /// Free text.
        note: Note = TextOf(String::new()),
        /// Words by which runs are found again.
        tags: Tags = ListOf(Vec::new()),
    }
}

spec! {
    /// Lengths of phases, in place of those of a test.
    PhaseLengthsSpec {
        /// Length of the phase before the load.
        idle: Option<Nanoseconds>,
        /// Length of the phase with the load.
        load: Option<Nanoseconds>,
        /// Length of the phase after the load.
        cooldown: Option<Nanoseconds>,
    }
}

spec! {
    /// How often what is sampled; `0s` switches the table off, but for pings, which a test has or has not.
    SamplingSpec {
        /// Time between two pings of a train that says nothing itself.
        ping: PositiveNanoseconds = PositiveNanoseconds(10_000_000),
        /// Time between two samples of the throughput.
        throughput: Nanoseconds = Nanoseconds(100_000_000),
        /// Time between two samples of the state of TCP.
        tcp: Nanoseconds = Nanoseconds(100_000_000),
        /// Time between two samples of the queues.
        queue: Nanoseconds = Nanoseconds(100_000_000),
    }
}

/// A test by its name or path, or itself.
pub type TestChoice = Named<String, TestSpec>;

/// A link by its name or path, or itself.
pub type LinkChoice = Named<String, LinkSpec>;

/// Free text of up to 10000 characters.
type Note = TextOf<10_000>;

/// Tests beside the first: more curves than that nobody tells apart.
const MAX_BESIDE: usize = 16;

/// Up to 100 words.
type Tags = AtMost<Tag, 100>;

/// Internet protocol, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpNumber {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl ScenarioSpec {
    /// The queue specs of one direction alone, in place of those of both; `None` without any.
    #[must_use]
    pub fn queue_of(&self, direction: Direction) -> Option<&OneOrMore<String>> {
        match direction {
            Direction::Up => self.queue_up.as_ref(),
            Direction::Down => self.queue_down.as_ref(),
        }
    }
}

impl IpNumber {
    /// The protocol of that number.
    #[must_use]
    pub const fn version(self) -> IpVersion {
        match self {
            Self::V4 => IpVersion::V4,
            Self::V6 => IpVersion::V6,
        }
    }
}

impl Field for IpNumber {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match written.value {
            Value::Whole(4) => Some(Self::V4),
            Value::Whole(6) => Some(Self::V6),
            _ => reader.wanted(written, "4 or 6"),
        }
    }

    fn write(&self, _: Form) -> Written {
        match self {
            Self::V4 => 4i64.into(),
            Self::V6 => 6i64.into(),
        }
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("enum", vec![4i64.into(), 6i64.into()].into())])
    }
}

/// The word for a link's own queue.
pub const DEFAULT_QUEUE: &str = "default";

/// The greatest seed: 2^63 - 1.
pub const MAX_SEED: i64 = i64::MAX;
