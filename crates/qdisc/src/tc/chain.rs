//! The filters of one parent, as Linux keeps them (`net/sched/cls_api.c`).

use super::filter::protocol_word;
use super::{Filter, FilterKind, Match, SpecError};

/// Puts `filter` where it is asked among those of its priority, and gives it a priority if none was written.
///
/// # Errors
/// If there is no priority left to give, or Linux does not take it beside those of its priority.
pub(super) fn add(chain: &mut Vec<Filter>, mut filter: Filter) -> Result<(), SpecError> {
    if filter.priority == Filter::NO_PRIORITY {
        filter.priority = free_priority(chain)?;
    }
    let beside = || chain.iter().filter(|other| other.priority == filter.priority);
    if let Some(first) = beside().next() {
        check_beside(first, &filter)?;
    }
    if filter.kind != FilterKind::U32 && beside().any(|other| same(other, &filter, Match::eq)) {
        return Err(SpecError::new(format!(
            "a `{}` filter with `prio {}` that asks the same is there already: write one of them",
            filter.kind.name(),
            filter.priority
        )));
    }
    // `flower` looks a packet up under one mask after the other, in the order in which these came (`fl_classify`).
    let alike =
        |other: &Filter| other.priority == filter.priority && same(other, &filter, Match::masks_as);
    let behind = (filter.kind == FilterKind::Flower).then(|| chain.iter().rposition(alike));
    chain.insert(behind.flatten().map_or(chain.len(), |place| place + 1), filter);
    Ok(())
}

/// Checks that `filter` is of the kind and protocol of `first`, which has its priority (`tc_new_tfilter`).
fn check_beside(first: &Filter, filter: &Filter) -> Result<(), SpecError> {
    let (what, one, other) = if first.kind != filter.kind {
        ("kind", first.kind.name(), filter.kind.name())
    } else if first.protocol != filter.protocol {
        ("protocol", protocol_word(first.protocol), protocol_word(filter.protocol))
    } else {
        return Ok(());
    };
    Err(SpecError::new(format!(
        "filters of one priority have one {what}, and those with `prio {}` have `{one}` and not `{other}`: write \
         another `prio`",
        filter.priority
    )))
}

/// Whether each match of `one` has its equal in `other`, as `equal` says.
fn same(one: &Filter, other: &Filter, equal: fn(&Match, &Match) -> bool) -> bool {
    let found = |it: &Match| other.matches.iter().any(|its| equal(it, its));
    one.matches.len() == other.matches.len() && one.matches.iter().all(found)
}

/// The priority of a filter of which none was written: the one in front of those that Linux gave before, so
/// that the last one written is asked first (`tcf_chain_tp_find`, `tcf_auto_prio`).
fn free_priority(chain: &[Filter]) -> Result<u16, SpecError> {
    let given = chain.iter().map(|filter| filter.priority).filter(|&it| it >= LEAST_GIVEN);
    match given.min() {
        None => Ok(FIRST_GIVEN),
        Some(LEAST_GIVEN) => Err(SpecError::new(format!(
            "a filter without `prio` gets the least priority from {LEAST_GIVEN} on, less one, and {LEAST_GIVEN} \
             is taken: write `prio`"
        ))),
        Some(least) => Ok(least - 1),
    }
}

/// The priority that Linux gives the first filter without one.
const FIRST_GIVEN: u16 = 0xc000;
/// The least that it gives.
const LEAST_GIVEN: u16 = 0x8000;
