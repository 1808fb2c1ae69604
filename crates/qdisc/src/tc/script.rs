//! The full form: the commands that one types after `tc`.

use std::sync::Arc;

use super::filter::Filter;
use super::{
    ClassSpec, Edit, Handle, QueueSpec, SizeTable, SpecError, chain, find, limits, shortened,
    size_table,
};

/// Whether `word` begins a `tc` command.
pub(super) fn begins(word: &str) -> bool {
    matches!(word, "qdisc" | "class" | "filter" | "sudo") || is_tc(word)
}

/// Reads `tc` commands, one a line or separated by `;`, for one device.
pub(super) fn parse(lines: &[String]) -> Result<QueueSpec, SpecError> {
    let mut script = Script::default();
    for line in lines.iter().flat_map(|line| line.split(';')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let behind_sudo = words.strip_prefix(&["sudo"]).unwrap_or(&words);
        let words = match behind_sudo.split_first() {
            None if words.is_empty() => continue,
            Some((word, rest)) if is_tc(word) => rest,
            _ => &words[..],
        };
        script.command(words).map_err(|error| {
            SpecError::new(format!("`{}`: {error}", shortened(&words.join(" "))))
        })?;
    }
    let mut root =
        script.root.ok_or_else(|| SpecError::new("no `qdisc add ... root` among the commands"))?;
    let egress = script.egress.into();
    hand_down(&mut root, &egress);
    root.writes = egress;
    Ok(root)
}

fn is_tc(word: &str) -> bool {
    word == "tc" || word.ends_with("/tc")
}

/// State of the spec after the commands so far.
#[derive(Default)]
struct Script {
    device: Option<String>,
    root: Option<QueueSpec>,
    has_clsact: bool,
    egress: Vec<Filter>,
}

impl Script {
    fn command(&mut self, words: &[&str]) -> Result<(), SpecError> {
        self.check_device(words)?;
        let root = &mut self.root;
        match words {
            // It only makes room for filters on the way out.
            ["qdisc", verb @ ("add" | "replace"), "dev", _, "clsact"] => {
                if *verb == "add" && self.has_clsact {
                    return Err(SpecError::new("`clsact` is there already"));
                }
                self.has_clsact = true;
                Ok(())
            }
            ["qdisc", verb @ ("add" | "replace"), rest @ ..] => {
                let handle = add_qdisc(rest, root, *verb == "replace")?;
                let Some(root) = root else { return Ok(()) };
                check_handle(root, handle)?;
                limits::check(root)
            }
            ["qdisc", "change", rest @ ..] => change_qdisc(rest, root),
            ["class", "add" | "replace", rest @ ..] => add_class(rest, root),
            ["filter", "add" | "replace", "dev", _, "egress", rest @ ..] => {
                let filter = Filter::parse(rest, 0)?;
                if !filter.police.is_empty() {
                    return Err(SpecError::new(FILTERS));
                }
                chain::add(&mut self.egress, filter)
            }
            ["filter", "add" | "replace", rest @ ..] => add_filter(rest, root),
            ["qdisc" | "class" | "filter", "del" | "delete", ..] => Err(SpecError::new(
                "a spec begins on a port without disciplines, where nothing is deleted: leave it out",
            )),
            ["sudo", ..] => Err(SpecError::new("behind `sudo` stands `tc`")),
            _ => Err(SpecError::new(
                "a command starts with `qdisc add`, `qdisc replace`, `qdisc change`, `class add`, \
                 `class replace`, `filter add` or `filter replace`",
            )),
        }
    }

    /// Refuses a second device: a spec is that of one port.
    fn check_device(&mut self, words: &[&str]) -> Result<(), SpecError> {
        let Some(at) = words.iter().position(|&word| word == "dev") else { return Ok(()) };
        let Some(&name) = words.get(at + 1) else {
            return Err(SpecError::new("`dev` needs the name of a device behind it"));
        };
        match &self.device {
            None => self.device = Some(name.to_owned()),
            Some(first) if first != name => {
                return Err(SpecError::new(format!(
                    "`dev {name}` after `dev {first}`: a spec is for one device"
                )));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Gives the device's filters to every discipline.
fn hand_down(spec: &mut QueueSpec, egress: &Arc<[Filter]>) {
    spec.egress = Arc::clone(egress);
    let leaves = spec.classes.iter_mut().filter_map(|class| class.leaf.as_mut());
    for child in leaves.chain(spec.child.as_mut()) {
        hand_down(child, egress);
    }
}

fn change_qdisc(words: &[&str], root: &mut Option<QueueSpec>) -> Result<(), SpecError> {
    let mut place = CommandTarget::default();
    let rest = place.read(words)?;
    let (name, params) =
        rest.split_first().ok_or_else(|| SpecError::new("the discipline's name is missing"))?;
    let there = match (place.handle, place.at_root) {
        (Some(handle), _) => owner_of(root, handle)?,
        (None, true) => match root {
            Some(ingress) if ingress.discipline.name == INGRESS => ingress.child.as_deref_mut(),
            _ => root.as_mut(),
        }
        .ok_or_else(|| SpecError::new("there is no root yet"))?,
        (None, false) => {
            return Err(SpecError::new("say which discipline to change: write its `handle`"));
        }
    };
    change(there, name, params.iter().map(|&word| word.to_owned()).collect(), place.size_table)
}

/// Gives further words to a discipline that is there. Its size table is that of the last command, or none
/// (`qdisc_change`).
fn change(
    there: &mut QueueSpec,
    name: &str,
    words: Vec<String>,
    size_table: Option<SizeTable>,
) -> Result<(), SpecError> {
    if there.discipline.name != name {
        return Err(SpecError::new(format!(
            "a `{}` cannot be changed into a `{name}`",
            there.discipline.name
        )));
    }
    if NOT_CHANGED.contains(&name) {
        return Err(SpecError::new(format!(
            "a `{name}` that is there cannot be changed: write all its words where it is added"
        )));
    }
    there.changes.push(words);
    there.size_table = size_table;
    Ok(())
}

/// Carries out a `qdisc add` or `replace`, and returns the handle that it gives.
fn add_qdisc(
    words: &[&str],
    root: &mut Option<QueueSpec>,
    replaces: bool,
) -> Result<Option<Handle>, SpecError> {
    let mut place = CommandTarget::default();
    let rest = place.read(words)?;
    let (name, params) =
        rest.split_first().ok_or_else(|| SpecError::new("the discipline's name is missing"))?;
    if place.size_table.is_some() && *name == INGRESS {
        return Err(SpecError::new(
            "`stab` at `ingress`, which queues nothing: write it at the root",
        ));
    }
    if place.size_table.is_some() && !place.at_root {
        return Err(size_table::only_at_the_root());
    }
    let spec = QueueSpec {
        discipline: find(name)?,
        handle: place.handle,
        words: params.iter().map(|&word| word.to_owned()).collect(),
        changes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        egress: Arc::default(),
        writes: Arc::default(),
        size_table: place.size_table.take(),
        child: None,
    };
    if *name == INGRESS {
        if root.as_ref().is_some_and(|root| root.discipline.name == INGRESS) {
            let there = Err(SpecError::new("`ingress` is there already"));
            return if replaces { Ok(None) } else { there };
        }
        // It sees packets before the discipline at the root does, whichever was written first.
        let handle = Some(spec.handle.unwrap_or(INGRESS_HANDLE));
        *root = Some(QueueSpec { handle, child: root.take().map(Box::new), ..spec });
        return Ok(handle);
    }
    if place.at_root {
        match root {
            Some(ingress) if ingress.discipline.name == INGRESS => {
                settle(&mut ingress.child, spec, replaces)?;
            }
            _ => {
                let mut there = root.take().map(Box::new);
                settle(&mut there, spec, replaces)?;
                *root = there.map(|at_root| *at_root);
            }
        }
        return Ok(place.handle);
    }
    let parent = place.parent()?;
    add_beneath(owner_of(root, parent)?, parent, spec, replaces)?;
    Ok(place.handle)
}

/// Puts `spec` where `place` is free. Where it is not, only a `replace` goes on: it changes a discipline
/// of its own kind, and takes the place of one of another kind, or of one whose handle is another
/// (`tc_modify_qdisc`).
fn settle(
    place: &mut Option<Box<QueueSpec>>,
    spec: QueueSpec,
    replaces: bool,
) -> Result<(), SpecError> {
    if let Some(there) = place {
        if !replaces {
            return Err(SpecError::new(format!(
                "a `{}` is there already: write one of the two, or `qdisc replace`",
                there.discipline.name
            )));
        }
        let same_kind = there.discipline.name == spec.discipline.name;
        let same_handle = spec.handle.is_some() && spec.handle == there.handle;
        if same_handle || (same_kind && spec.handle.is_none()) {
            return change(there, spec.discipline.name, spec.words, spec.size_table);
        }
    }
    *place = Some(Box::new(spec));
    Ok(())
}

/// Puts `spec` into the class `parent` of `owner`, or beneath `owner` itself if that takes a child.
fn add_beneath(
    owner: &mut QueueSpec,
    parent: Handle,
    spec: QueueSpec,
    replaces: bool,
) -> Result<(), SpecError> {
    if owner.discipline.takes_child {
        return settle(&mut owner.child, spec, replaces);
    }
    if owner.discipline.has_bands() && owner.classes.iter().all(|class| class.id != parent) {
        let owner_id = Handle { minor: 0, ..parent };
        owner.classes.push(ClassSpec {
            id: parent,
            parent: owner_id,
            words: Vec::new(),
            leaf: None,
        });
    }
    let class = owner
        .classes
        .iter_mut()
        .find(|class| class.id == parent)
        .ok_or_else(|| SpecError::new(format!("there is no class `{parent}`")))?;
    settle(&mut class.leaf, spec, replaces)
}

fn add_class(words: &[&str], root: &mut Option<QueueSpec>) -> Result<(), SpecError> {
    let mut place = CommandTarget::default();
    let rest = place.read(words)?;
    let parent = place.parent()?;
    let mut id = place.class.ok_or_else(|| SpecError::new("`classid` is missing"))?;
    let owner = owner_of(root, parent)?;
    if id.major == 0 {
        id.major = parent.major;
    }
    let (name, params) =
        rest.split_first().ok_or_else(|| SpecError::new("the discipline's name is missing"))?;
    if *name != owner.discipline.name {
        return Err(SpecError::new(format!(
            "a `{name}` class cannot hang from a `{}` discipline",
            owner.discipline.name
        )));
    }
    if owner.discipline.has_bands() {
        return Err(SpecError::new(format!(
            "the classes of `{name}` are its bands, which are there by themselves"
        )));
    }
    let known = parent.minor == 0 || owner.classes.iter().any(|class| class.id == parent);
    if !known {
        return Err(SpecError::new(format!("there is no class `{parent}`")));
    }
    if owner.classes.iter().any(|class| class.id == id) {
        return Err(SpecError::new(format!("class `{id}` is there already")));
    }
    owner.classes.push(ClassSpec {
        id,
        parent,
        words: params.iter().map(|&word| word.to_owned()).collect(),
        leaf: None,
    });
    Ok(())
}

fn add_filter(words: &[&str], root: &mut Option<QueueSpec>) -> Result<(), SpecError> {
    let mut place = CommandTarget::default();
    let rest = place.read_parent(words)?;
    let parent = place.parent()?;
    if parent.minor != 0 {
        return Err(SpecError::new(format!(
            "filters hang from a discipline, not from a class: write `parent {:x}:`",
            parent.major
        )));
    }
    let filter = Filter::parse(rest, parent.major)?;
    if filter.edit != Edit::default() {
        return Err(SpecError::new(
            "`skbedit` in a filter of a discipline: write it on the way out, `qdisc add dev DEVICE clsact` \
             and `filter add dev DEVICE egress ...`",
        ));
    }
    let owner = owner_of(root, parent)?;
    if filter.police.is_empty() == (owner.discipline.name == INGRESS) {
        return Err(SpecError::new(
            "filters of `ingress` name a policer, filters of others a class",
        ));
    }
    chain::add(&mut owner.filters, filter)
}

/// Target of a command: the words before the discipline's or filter's own.
#[derive(Default)]
struct CommandTarget {
    at_root: bool,
    parent: Option<Handle>,
    handle: Option<Handle>,
    class: Option<Handle>,
    size_table: Option<SizeTable>,
}

impl CommandTarget {
    /// Reads as far as it goes, and returns the rest.
    fn read<'w, 's>(&mut self, mut words: &'w [&'s str]) -> Result<&'w [&'s str], SpecError> {
        loop {
            words = match words {
                ["dev", _, rest @ ..] => rest,
                ["root", rest @ ..] => {
                    self.at_root = true;
                    rest
                }
                ["parent", value, rest @ ..] => {
                    self.parent = Some(parent(value)?);
                    rest
                }
                ["stab", rest @ ..] => {
                    let (own, rest) = rest.split_at(size_table::words_of(rest));
                    self.size_table = Some(SizeTable::read(own)?);
                    rest
                }
                ["handle", value, rest @ ..] => {
                    self.handle = Some(discipline(value)?);
                    rest
                }
                ["classid", value, rest @ ..] => {
                    self.class = Some(class(value)?);
                    rest
                }
                _ => return Ok(words),
            };
        }
    }

    /// Reads as far as the discipline of a filter goes, and returns the rest: a `handle` behind it is the
    /// filter's own.
    fn read_parent<'w, 's>(&mut self, words: &'w [&'s str]) -> Result<&'w [&'s str], SpecError> {
        match words {
            ["dev", _, rest @ ..] => self.read_parent(rest),
            ["parent", value, rest @ ..] => {
                self.parent = Some(parent(value)?);
                Ok(rest)
            }
            _ => Ok(words),
        }
    }

    fn parent(&self) -> Result<Handle, SpecError> {
        self.parent.ok_or_else(|| SpecError::new("`root` or `parent` is missing"))
    }
}

fn discipline(text: &str) -> Result<Handle, SpecError> {
    Handle::of_discipline(text).ok_or_else(|| {
        SpecError::new(format!(
            "`{text}` is not a handle: write a hexadecimal number up to ffff and a colon, such as `1:`"
        ))
    })
}

fn class(text: &str) -> Result<Handle, SpecError> {
    Handle::of_class(text).ok_or_else(|| {
        SpecError::new(format!("`{text}` is not a class: write `major:minor` in hexadecimal"))
    })
}

/// A class or a discipline: without a colon it is a class of none, where the kernel finds nothing.
fn parent(text: &str) -> Result<Handle, SpecError> {
    Handle::parse(text).ok_or_else(|| match Handle::of_discipline(text) {
        Some(_) => {
            SpecError::new(format!("`parent {text}` names no discipline: write `parent {text}:`"))
        }
        None => {
            SpecError::new(format!("`{text}` is not a handle: write `major:minor` in hexadecimal"))
        }
    })
}

/// The discipline to which the handle `at` belongs.
fn owner_of(root: &mut Option<QueueSpec>, at: Handle) -> Result<&mut QueueSpec, SpecError> {
    root.as_mut()
        .and_then(|root| descend(root, at.major))
        .ok_or_else(|| SpecError::new(format!("there is no discipline `{:x}:`", at.major)))
}

fn descend(spec: &mut QueueSpec, major: u16) -> Option<&mut QueueSpec> {
    if spec.handle.is_some_and(|handle| handle.major == major) {
        return Some(spec);
    }
    let children = spec.classes.iter_mut().filter_map(|class| class.leaf.as_mut());
    children.chain(spec.child.as_mut()).find_map(|child| descend(child, major))
}

/// Refuses a handle that two disciplines have.
fn check_handle(root: &QueueSpec, handle: Option<Handle>) -> Result<(), SpecError> {
    match handle {
        Some(handle) if holders(root, handle.major) > 1 => {
            Err(SpecError::new(format!("the handle `{:x}:` is given away already", handle.major)))
        }
        _ => Ok(()),
    }
}

fn holders(spec: &QueueSpec, major: u16) -> usize {
    let own = usize::from(spec.handle.is_some_and(|handle| handle.major == major));
    let children = spec.classes.iter().filter_map(|class| class.leaf.as_ref());
    own + children.chain(&spec.child).map(|child| holders(child, major)).sum::<usize>()
}

/// The discipline that stands in front of the root, and its handle (`TC_H_INGRESS`).
const INGRESS: &str = "ingress";
const INGRESS_HANDLE: Handle = Handle { major: 0xffff, minor: 0 };

/// Disciplines whose words Linux does not change once they are there ("Change operation not supported by
/// specified qdisc"). Of drr and qfq, which have no such operation either, `tc` hands over no words.
const NOT_CHANGED: [&str; 2] = ["htb", "sfq"];

/// The rule for filters, as error messages state it.
const FILTERS: &str = "filters of `ingress` name a policer, filters of others a class";
