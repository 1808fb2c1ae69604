//! Declaration of link files: hops, their lines, and what goes wrong on these.

use weir_core::Direction;

use crate::check::{MAX_MTU, MAX_PACKET_RATE, MIN_MTU};
use crate::file::field::{Definitions, Field, Form, Reader, choice, either, spec};
use crate::file::plain::{ByName, Count, Probability, Whole, Word};
use crate::file::quantity::{LineRate, Nanoseconds, PositiveNanoseconds};
use crate::file::references;
use crate::file::written::{Value, Written, table};

spec! {
    /// A link: the hops of both directions, each in the order in which packets pass them.
    LinkSpec {
        /// Name of the link.
        name: Word,
        /// Title of the link on charts.
        title: String,
        /// Description of the link, in a line.
        summary: String = String::new(),
        /// Where its numbers come from, and which are chosen.
        source: String = String::new(),
        /// Largest IP packet in bytes.
        mtu: Whole<{ MIN_MTU as i64 }, { MAX_MTU as i64 }> = Whole(1500),
        /// From the client to the servers.
        up: Vec<HopSpec> = Vec::new(),
        /// From the servers to the client.
        down: Vec<HopSpec> = Vec::new(),
        /// Ways over some of the hops, by name: servers of a test whose `route` has such a name are reached by it.
        routes: ByName<RouteSpec> = ByName(Vec::new()),
    }
    refers references::of_link;
}

spec! {
    /// A way between the client and servers, over some hops of the link.
    RouteSpec {
        /// Names of hops up, each once, in the order in which packets pass them; `[]` means directly. All hops up, in
        /// the order of the link, if nothing is said.
        up: Option<Vec<Word>>,
        /// Names of hops down, in the same way.
        down: Option<Vec<Word>>,
    }
}

impl RouteSpec {
    /// The names of the hops of a direction; `None` for all.
    #[must_use]
    pub fn hops(&self, direction: Direction) -> Option<&[Word]> {
        match direction {
            Direction::Up => self.up.as_deref(),
            Direction::Down => self.down.as_deref(),
        }
    }
}

spec! {
    /// A queue and the line behind it.
    HopSpec {
        /// Name of the hop.
        name: Word,
        /// `queue` where the user's queue goes; `queue` below is then what sits there if none is given.
        place: PlaceWord = PlaceWord::Fixed,
        /// The queue, in `tc` syntax.
        queue: String = "pfifo".to_owned(),
        /// The marker in front of the queue: its name and parameters; none if nothing is said.
        marker: Option<String>,
        /// The line's rate; unlimited if neither this nor `trace` is given.
        rate: Option<LineRate>,
        /// The name of a recorded line, or a path to a file in Mahimahi's format.
        trace: Option<String>,
        /// A name (`none`, `ethernet`, `ptm`, `atm`, `docsis`) or numbers.
        framing: FramingChoice = FramingChoice::Name(FramingWord::None),
        /// Propagation delay.
        delay: Nanoseconds = Nanoseconds(0),
        /// Greatest additional delay, drawn evenly a packet, without reordering.
        jitter: Nanoseconds = Nanoseconds(0),
        /// Loss on the line.
        loss: Option<LossSpec>,
        /// Packets that overtake others on the line; needs a delay.
        reorder: Option<ReorderSpec>,
        /// Probability that a packet arrives twice.
        duplicate: Probability = Probability(0.0),
        /// Packets per second that the processor of the router in front of the hop forwards, of any length; without
        /// end if nothing is said.
        packet_rate: Option<Whole<1, { MAX_PACKET_RATE as i64 }>>,
        /// Packets that may wait for that processor, in a FIFO; 1000 if nothing is said.
        packet_queue: Option<Count>,
        /// Packets that a plain FIFO holds where its spec names no limit.
        txqueuelen: Count = Whole(1000),
        /// Changes of the line while the run goes on.
        changes: Vec<ChangeSpec> = Vec::new(),
        /// Another path from time to time; a pause of the line, too.
        reconfiguration: Option<ReconfigurationSpec>,
        /// Packets are asked for before they may be sent, as on cable; needs a `rate`.
        grants: Option<GrantsSpec>,
        /// The line competes for the air, as in wireless networks; needs a `rate`.
        airtime: Option<AirtimeSpec>,
    }
    check |hop| match (hop.rate, &hop.trace) {
        _ if hop.grants.is_some() && hop.airtime.is_some() => {
            Err(format!("hop `{}`: `grants` and `airtime` exclude each other", hop.name.0))
        }
        (Some(_), Some(_)) => {
            Err(format!("hop `{}`: `rate` and `trace` exclude each other", hop.name.0))
        }
        _ if hop.packet_queue.is_some() && hop.packet_rate.is_none() => {
            Err(format!("hop `{}`: `packet_queue` needs `packet_rate`", hop.name.0))
        }
        _ => Ok(()),
    };
}

choice! {
    /// Whose queue a hop has.
    PlaceWord {
        /// Always its own.
        Fixed = "fixed",
        /// The user's, if there is one.
        Queue = "queue",
    }
}

choice! {
    /// How packets are wrapped on a line, by name; the names of `tc-cake(8)`.
    FramingWord {
        /// The line counts IP bytes and nothing else.
        None = "none",
        /// Ethernet with everything that takes time.
        Ethernet = "ethernet",
        /// VDSL2 with bridged Ethernet.
        Ptm = "ptm",
        /// ADSL with bridged Ethernet.
        Atm = "atm",
        /// DOCSIS cable.
        Docsis = "docsis",
    }
}

spec! {
    /// How packets are wrapped on a line, in numbers.
    FramingSpec {
        /// Bytes added to every IP packet.
        overhead: Whole<0, 1000> = Whole(0),
        /// The least that a packet occupies.
        minimum: Whole<0, 1000> = Whole(0),
        /// How it is cut up.
        cells: CellsWord = CellsWord::None,
    }
}

choice! {
    /// How a framed packet is cut up.
    CellsWord {
        /// It is not.
        None = "none",
        /// ATM, as ADSL has it.
        Atm = "atm",
        /// PTM, as VDSL2 has it.
        Ptm = "ptm",
    }
}

/// How packets are wrapped on a line: by name, or in numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum FramingChoice {
    /// By name.
    Name(FramingWord),
    /// In numbers.
    Numbers(FramingSpec),
}

impl Field for FramingChoice {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::Table(_) => FramingSpec::read(written, reader).map(Self::Numbers),
            Value::Text(_) => FramingWord::read(written, reader).map(Self::Name),
            _ => reader
                .wanted(written, &format!("one of {} or a table", FramingWord::WORDS.join(", "))),
        }
    }

    fn write(&self, form: Form) -> Written {
        match self {
            Self::Name(name) => name.write(form),
            Self::Numbers(numbers) => numbers.write(form),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        let kinds = vec![FramingWord::schema(definitions), FramingSpec::schema(definitions)];
        table([("anyOf", kinds.into())])
    }
}

spec! {
    /// Each packet is lost by itself.
    RandomLossSpec {
        /// `random`.
        model: RandomWord,
        /// Probability for a packet.
        probability: Probability,
    }
}

spec! {
    /// Losses in bursts: a line that is in a good or a bad state (Gilbert and Elliott).
    GilbertElliottLossSpec {
        /// `gilbert_elliott`.
        model: GilbertElliottWord,
        /// Probability that a packet takes the line from the good state into the bad one.
        good_to_bad: Probability,
        /// Probability that a packet takes the line from the bad state into the good one.
        bad_to_good: Probability,
        /// Probability that a packet is lost in the bad state.
        loss_when_bad: Probability = Probability(1.0),
        /// Probability that a packet is lost in the good state.
        loss_when_good: Probability = Probability(0.0),
    }
}

choice! {
    /// The model of losses one by one.
    RandomWord {
        /// Each packet by itself.
        Random = "random",
    }
}

choice! {
    /// The model of losses in bursts.
    GilbertElliottWord {
        /// Two states.
        GilbertElliott = "gilbert_elliott",
    }
}

/// Loss on a line; `model` says which.
#[derive(Clone, Debug, PartialEq)]
pub enum LossSpec {
    /// Each packet by itself.
    Random(RandomLossSpec),
    /// In bursts.
    GilbertElliott(GilbertElliottLossSpec),
}

impl Field for LossSpec {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let Value::Table(_) = &written.value else {
            return reader
                .wanted(written, "a table such as { model = 'random', probability = 0.01 }");
        };
        let models = [RandomWord::WORDS, GilbertElliottWord::WORDS].concat();
        match written.get("model").map(|model| &model.value) {
            None => reader.wanted(written, "it with 'model'"),
            Some(Value::Text(model)) if model == models[0] => {
                RandomLossSpec::read(written, reader).map(Self::Random)
            }
            Some(Value::Text(model)) if model == models[1] => {
                GilbertElliottLossSpec::read(written, reader).map(Self::GilbertElliott)
            }
            Some(_) => {
                let models: Vec<String> = models.iter().map(|model| format!("'{model}'")).collect();
                reader.wanted(written, &format!("'model' = {}", either(&models)))
            }
        }
    }

    fn write(&self, form: Form) -> Written {
        match self {
            Self::Random(loss) => loss.write(form),
            Self::GilbertElliott(loss) => loss.write(form),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        let models =
            vec![RandomLossSpec::schema(definitions), GilbertElliottLossSpec::schema(definitions)];
        let told_by = table([("propertyName", "model".into())]);
        table([("oneOf", models.into()), ("discriminator", told_by)])
    }
}

spec! {
    /// Packets that arrive without the delay and so overtake those under way.
    ReorderSpec {
        /// Probability for a packet that may.
        probability: Probability,
        /// Every so many packets one may.
        gap: Count = Whole(1),
    }
}

spec! {
    /// Another path from time to time, as of satellites: each has a delay and a rate of its own.
    ReconfigurationSpec {
        /// How long each path is kept.
        period: PositiveNanoseconds,
        /// When the second path begins; after a period if nothing is said.
        first: Option<Nanoseconds>,
        /// Greatest additional delay; each path draws its own, evenly from none.
        delay: Nanoseconds = Nanoseconds(0),
        /// Least share of the line's rate; each path draws its own, evenly up to 1.
        min_rate_share: Probability = Probability(1.0),
        /// How long the line carries nothing at the start of each further path.
        outage: Nanoseconds = Nanoseconds(0),
    }
}

spec! {
    /// Requests and grants, as of a cable modem: what waits is asked for, and sent in a later interval.
    GrantsSpec {
        /// Length of an interval; that of a MAP in DOCSIS.
        interval: PositiveNanoseconds = PositiveNanoseconds(2_000_000),
        /// Least time from a request to the interval of its grant.
        delay: Nanoseconds,
    }
}

spec! {
    /// Opportunities to send in a wireless network: IEEE 802.11's distributed coordination with aggregates.
    AirtimeSpec {
        /// Name of the medium; hops of one name share it. A medium of its own if nothing is said.
        medium: Option<Word>,
        /// Most packets of an aggregate.
        packets: Count = Whole(32),
        /// No packet is begun later than this behind the first of its aggregate.
        longest: Nanoseconds = Nanoseconds(4_000_000),
        /// What an opportunity costs besides its packets: preamble, acknowledgement, gaps within.
        overhead: Nanoseconds,
        /// Silence before slots are counted (DIFS).
        gap: Nanoseconds = Nanoseconds(34_000),
        /// Length of a slot of the backoff.
        slot: PositiveNanoseconds = PositiveNanoseconds(9_000),
        /// Slots are drawn evenly from 0 to this (CWmin).
        window: Whole<0, 32767> = Whole(15),
        /// The most to which failures double the window (CWmax).
        max_window: Whole<0, 32767> = Whole(1023),
        /// Probability that an opportunity fails; it then costs its overhead, and is tried again.
        failures: Probability = Probability(0.0),
    }
}

spec! {
    /// Something that happens to a line while the run goes on; `rate`, `down`, `delay` or `loss`, or several.
    ChangeSpec {
        /// When, from the start of the run.
        at: Nanoseconds,
        /// The line's rate from then on.
        rate: Option<LineRate>,
        /// The line carries nothing until it is given a rate again.
        down: bool = false,
        /// The line's propagation delay from then on.
        delay: Option<Nanoseconds>,
        /// Loss on the line from then on, in place of that before.
        loss: Option<LossSpec>,
    }
    check |change| match (change.rate, change.delay, &change.loss, change.down) {
        (None, None, None, false) => {
            Err("nothing changes: give `rate` (which ends `down`), `delay`, `loss`, or `down = true`".to_owned())
        }
        (Some(_), _, _, true) => Err("`rate` and `down` exclude each other".to_owned()),
        _ => Ok(()),
    };
}
