//! The filters of one parent, as Linux keeps them (`net/sched/cls_api.c`).

use super::{Filter, SpecError};

/// Puts `filter` behind those that were written before it, and gives it a priority if none was written.
///
/// # Errors
/// If there is no priority left to give.
pub(super) fn add(chain: &mut Vec<Filter>, mut filter: Filter) -> Result<(), SpecError> {
    if filter.priority == Filter::NO_PRIORITY {
        filter.priority = free_priority(chain)?;
    }
    chain.push(filter);
    Ok(())
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
