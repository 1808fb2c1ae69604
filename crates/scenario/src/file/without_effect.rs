//! What a scenario compares and nothing takes: it would be told as a result, and made no difference.

use weir_core::Direction;

use crate::file::link::LinkSpec;
use crate::file::shaper::ShaperChoice;
use crate::file::spec::{DEFAULT_QUEUE, ScenarioSpec};
use crate::file::test::{FlowSpec, MethodSpec, TestSpec};

/// The queues of a configuration as written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Queues<'q> {
    /// That of the directions that have none of their own.
    pub both: &'q str,
    /// That of each direction alone, if one is written.
    pub own: [Option<&'q str>; 2],
}

impl<'q> Queues<'q> {
    /// The queue of each direction.
    pub(crate) fn of_directions(&self) -> [&'q str; 2] {
        self.own.map(|own| own.unwrap_or(self.both))
    }

    /// Each queue as written, with its key and the directions that it is for.
    fn all(&mut self) -> Vec<(String, &mut &'q str, Vec<Direction>)> {
        let (own, rest): (Vec<_>, Vec<_>) =
            Direction::ALL.into_iter().zip(&mut self.own).partition(|(_, own)| own.is_some());
        let rest: Vec<_> = rest.into_iter().map(|(direction, _)| direction).collect();
        let key = |direction| format!("queue_{direction}");
        let own = own.into_iter().filter_map(|(direction, own)| {
            own.as_mut().map(|own| (key(direction), own, vec![direction]))
        });
        let both = (!rest.is_empty()).then(|| ("queue".to_owned(), &mut self.both, rest));
        own.chain(both).collect()
    }
}

/// The directions in which a shaper takes the queue.
pub(crate) struct Shaped {
    here: Vec<Direction>,
    /// Those in which any shaper of the scenario does.
    anywhere: Vec<Direction>,
}

impl Shaped {
    /// Those of each of the shapers of a scenario.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub(crate) fn all<'s>(
        shapers: impl Iterator<Item = &'s ShaperChoice>,
    ) -> Result<Vec<Self>, String> {
        let shaped = |shaper: &ShaperChoice| {
            let spec = shaper.spec()?;
            let is_shaped = |way: &Direction| spec.as_ref().is_some_and(|spec| spec.shapes(*way));
            Ok(Direction::ALL.into_iter().filter(is_shaped).collect())
        };
        let all: Vec<Vec<Direction>> = shapers.map(shaped).collect::<Result<_, String>>()?;
        let anywhere = all.concat();
        Ok(all.into_iter().map(|here| Self { here, anywhere: anywhere.clone() }).collect())
    }

    /// The queues that something takes on `link`: one that has no place there, but that another shaper of the scenario
    /// takes, is the link's own.
    ///
    /// # Errors
    /// If one has no place, and no shaper takes it.
    pub(crate) fn taken<'q>(
        &self,
        link: &LinkSpec,
        mut queues: Queues<'q>,
    ) -> Result<Queues<'q>, String> {
        for (key, queue, directions) in queues.all() {
            let is_placed = |way: &Direction| self.here.contains(way) || link.has_place(*way);
            if *queue == DEFAULT_QUEUE || directions.iter().any(is_placed) {
                continue;
            }
            if !directions.iter().any(|way| self.anywhere.contains(way)) {
                let of = directions.iter().map(|way| way.word()).collect::<Vec<_>>().join(" or ");
                return Err(if directions.iter().all(|way| link.hops(*way).is_empty()) {
                    format!(
                        "{key} `{queue}`: there is no hop {of} to put it into, as the queues are those of what is \
                         measured: leave it out"
                    )
                } else {
                    format!(
                        "{key} `{queue}`: no hop {of} of link `{}` has a place for it: write `place = \"queue\"` at the \
                         hop whose queue it replaces",
                        link.name.0
                    )
                });
            }
            *queue = DEFAULT_QUEUE;
        }
        Ok(queues)
    }
}

/// Whether an end of any load has the scenario's congestion control.
pub(crate) fn takes_cc(spec: &ScenarioSpec, test: &TestSpec) -> bool {
    test.flows.iter().any(FlowSpec::takes_cc)
        || test.methods.iter().chain(&spec.methods).any(MethodSpec::takes_cc)
}
