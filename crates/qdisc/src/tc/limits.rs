//! How large a spec may be: everything that is built of it fits into memory and onto the stack.

use super::{QueueSpec, SpecError};
use crate::registry::Discipline;
use crate::tc::{DefaultValue, ParamKind};

/// The parts of a spec, counted as they are built.
#[derive(Clone, Copy, Default)]
struct Size {
    disciplines: u64,
    classes: u64,
    filters: u64,
    flows: u64,
}

/// Checks that a spec is not larger than what can be built.
///
/// # Errors
/// If it nests too deeply, or has too many disciplines, classes, filters or flows.
pub(super) fn check(spec: &QueueSpec) -> Result<(), SpecError> {
    let mut size = Size { filters: spec.egress.len() as u64, ..Size::default() };
    add(&mut size, spec, 1, 1)?;
    for (count, limit, what) in [
        (size.disciplines, MAX_DISCIPLINES, "queue disciplines"),
        (size.classes, MAX_CLASSES, "classes"),
        (size.filters, MAX_FILTERS, "filters"),
        (size.flows, MAX_FLOWS, "queues of flows"),
    ] {
        if count > limit {
            return Err(SpecError::new(format!("a spec of {count} {what}: {limit} are allowed")));
        }
    }
    Ok(())
}

/// Checks that a discipline may stand on `level`, the root's being 1.
///
/// # Errors
/// If that is too deep.
pub(super) fn check_level(level: usize) -> Result<(), SpecError> {
    if level <= MAX_LEVELS {
        return Ok(());
    }
    Err(SpecError::new(format!(
        "queue disciplines beneath one another on more than {MAX_LEVELS} levels: {MAX_LEVELS} are allowed"
    )))
}

/// Adds `copies` of `spec`, whose discipline stands on `level`.
fn add(size: &mut Size, spec: &QueueSpec, copies: u64, level: usize) -> Result<(), SpecError> {
    check_level(level)?;
    let kind = spec.discipline;
    let many = |count: usize| copies.saturating_mul(count as u64);
    size.disciplines = size.disciplines.saturating_add(copies);
    size.classes = size.classes.saturating_add(many(spec.classes.len()));
    size.filters = size.filters.saturating_add(many(spec.filters.len()));
    size.flows = size.flows.saturating_add(copies.saturating_mul(flows(spec)));
    for leaf in spec.classes.iter().filter_map(|class| class.leaf.as_deref()) {
        add(size, leaf, copies, level + 1)?;
    }
    let Some(child) = &spec.child else { return Ok(()) };
    let bands = kind.params.iter().find(|param| matches!(param.kind, ParamKind::Bands { .. }));
    let copies = bands.map_or(copies, |_| copies.saturating_mul(bands_of(spec)));
    add(size, child, copies, level + 1)
}

/// The most bands that `spec` may have.
fn bands_of(spec: &QueueSpec) -> u64 {
    written(spec, "bands").map_or(MAX_BANDS, |bands| bands.min(MAX_BANDS))
}

/// How many queues of flows a discipline keeps at once.
fn flows(spec: &QueueSpec) -> u64 {
    let of = |name| written(spec, name).or_else(|| default(spec.discipline, name));
    FLOWS.iter().filter_map(|name| of(name)).fold(0, u64::saturating_add)
}

/// The number that is written last behind `name`.
fn written(spec: &QueueSpec, name: &str) -> Option<u64> {
    let lists = spec.changes.iter().rev().chain([&spec.words]);
    let mut found = lists.filter_map(|words| {
        let at = words.iter().rposition(|word| word == name)?;
        words.get(at + 1)?.parse().ok()
    });
    found.next()
}

fn default(discipline: &Discipline, name: &str) -> Option<u64> {
    let param = discipline.params.iter().find(|param| param.name == name)?;
    match param.default {
        DefaultValue::Is(text) => text.parse().ok(),
        _ => None,
    }
}

/// Disciplines beneath one another. Linux' `check_loop` allows eight; nothing here needs more than the
/// stack of a thread holds many times over.
const MAX_LEVELS: usize = 16;
const MAX_DISCIPLINES: u64 = 1024;
const MAX_CLASSES: u64 = 4096;
const MAX_FILTERS: u64 = 4096;
/// Queues of flows in all disciplines: about 100 bytes each.
const MAX_FLOWS: u64 = 1 << 20;
/// `TCQ_PRIO_BANDS`, `TCQ_ETS_MAX_BANDS`.
const MAX_BANDS: u64 = 16;
/// Parameters that say how many queues of flows there are.
const FLOWS: [&str; 3] = ["flows", "buckets", "divisor"];
