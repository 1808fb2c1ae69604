//! The full form: the commands that one types after `tc`.

use super::filter::Filter;
use super::{ClassSetUp, Handle, SetUp, SetUpError, find};

/// Reads `tc` commands, one a line or separated by `;`, for one device.
pub(super) fn parse(text: &str) -> Result<SetUp, SetUpError> {
    let mut root: Option<SetUp> = None;
    let mut egress = Vec::new();
    for line in text.split(['\n', ';']) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let words = match words.split_first() {
            None => continue,
            Some((&"tc", rest)) => rest,
            Some(_) => &words[..],
        };
        command(words, &mut root, &mut egress)
            .map_err(|error| SetUpError::new(format!("`{}`: {error}", line.trim())))?;
    }
    let mut root =
        root.ok_or_else(|| SetUpError::new("no `qdisc add ... root` among the commands"))?;
    hand_down(&mut root, &egress);
    Ok(root)
}

fn command(
    words: &[&str],
    root: &mut Option<SetUp>,
    egress: &mut Vec<Filter>,
) -> Result<(), SetUpError> {
    match words {
        // It only makes room for filters on the way out.
        ["qdisc", "add" | "replace", "dev", _, "clsact"] => Ok(()),
        ["qdisc", "add" | "replace", rest @ ..] => add_qdisc(rest, root),
        ["qdisc", "change", rest @ ..] => change_qdisc(rest, root),
        ["class", "add" | "replace", rest @ ..] => add_class(rest, root),
        ["filter", "add" | "replace", "dev", _, "egress", rest @ ..] => {
            egress.push(Filter::parse(rest, 0)?);
            Ok(())
        }
        ["filter", "add" | "replace", rest @ ..] => add_filter(rest, root),
        _ => Err(SetUpError::new(
            "a command starts with `qdisc add`, `qdisc change`, `class add` or `filter add`",
        )),
    }
}

/// Gives the device's filters to every discipline.
fn hand_down(set_up: &mut SetUp, egress: &[Filter]) {
    set_up.egress = egress.to_vec();
    let leaves = set_up.classes.iter_mut().filter_map(|class| class.leaf.as_mut());
    for child in leaves.chain(set_up.child.as_mut()) {
        hand_down(child, egress);
    }
}

fn change_qdisc(words: &[&str], root: &mut Option<SetUp>) -> Result<(), SetUpError> {
    let mut place = Place::default();
    let rest = place.read(words)?;
    let (name, params) =
        rest.split_first().ok_or_else(|| SetUpError::new("the discipline's name is missing"))?;
    let there = match (place.handle, place.at_root) {
        (Some(handle), _) => owner_of(root, handle)?,
        (None, true) => root.as_mut().ok_or_else(|| SetUpError::new("there is no root yet"))?,
        (None, false) => {
            return Err(SetUpError::new("say which discipline to change: write its `handle`"));
        }
    };
    if there.discipline.name != *name {
        return Err(SetUpError::new(format!(
            "a `{}` cannot be changed into a `{name}`",
            there.discipline.name
        )));
    }
    there.changes.push(params.iter().map(|&word| word.to_owned()).collect());
    Ok(())
}

fn add_qdisc(words: &[&str], root: &mut Option<SetUp>) -> Result<(), SetUpError> {
    let mut place = Place::default();
    let rest = place.read(words)?;
    let (name, params) =
        rest.split_first().ok_or_else(|| SetUpError::new("the discipline's name is missing"))?;
    let set_up = SetUp {
        discipline: find(name)?,
        handle: place.handle,
        words: params.iter().map(|&word| word.to_owned()).collect(),
        changes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        egress: Vec::new(),
        child: None,
    };
    if place.at_root {
        *root = Some(set_up);
        return Ok(());
    }
    let parent = place.parent()?;
    let owner = owner_of(root, parent)?;
    if owner.discipline.takes_child {
        owner.child = Some(Box::new(set_up));
        return Ok(());
    }
    if owner.discipline.has_bands() && owner.classes.iter().all(|class| class.id != parent) {
        let owner_id = Handle { minor: 0, ..parent };
        owner.classes.push(ClassSetUp {
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
        .ok_or_else(|| SetUpError::new(format!("there is no class `{parent}`")))?;
    class.leaf = Some(Box::new(set_up));
    Ok(())
}

fn add_class(words: &[&str], root: &mut Option<SetUp>) -> Result<(), SetUpError> {
    let mut place = Place::default();
    let rest = place.read(words)?;
    let parent = place.parent()?;
    let mut id = place.class.ok_or_else(|| SetUpError::new("`classid` is missing"))?;
    let owner = owner_of(root, parent)?;
    if id.major == 0 {
        id.major = parent.major;
    }
    let (name, params) =
        rest.split_first().ok_or_else(|| SetUpError::new("the discipline's name is missing"))?;
    if *name != owner.discipline.name {
        return Err(SetUpError::new(format!(
            "a `{name}` class cannot hang from a `{}` discipline",
            owner.discipline.name
        )));
    }
    if owner.discipline.has_bands() {
        return Err(SetUpError::new(format!(
            "the classes of `{name}` are its bands, which are there by themselves"
        )));
    }
    let known = parent.minor == 0 || owner.classes.iter().any(|class| class.id == parent);
    if !known {
        return Err(SetUpError::new(format!("there is no class `{parent}`")));
    }
    if owner.classes.iter().any(|class| class.id == id) {
        return Err(SetUpError::new(format!("class `{id}` is there already")));
    }
    owner.classes.push(ClassSetUp {
        id,
        parent,
        words: params.iter().map(|&word| word.to_owned()).collect(),
        leaf: None,
    });
    Ok(())
}

fn add_filter(words: &[&str], root: &mut Option<SetUp>) -> Result<(), SetUpError> {
    let mut place = Place::default();
    let rest = place.read(words)?;
    let parent = place.parent()?;
    if parent.minor != 0 {
        return Err(SetUpError::new(format!(
            "filters hang from a discipline, not from a class: write `parent {:x}:`",
            parent.major
        )));
    }
    let filter = Filter::parse(rest, parent.major)?;
    owner_of(root, parent)?.filters.push(filter);
    Ok(())
}

/// Where a command applies: the words before the discipline's or filter's own.
#[derive(Default)]
struct Place {
    at_root: bool,
    parent: Option<Handle>,
    handle: Option<Handle>,
    class: Option<Handle>,
}

impl Place {
    /// Reads as far as it goes, and returns the rest.
    fn read<'w, 's>(&mut self, mut words: &'w [&'s str]) -> Result<&'w [&'s str], SetUpError> {
        loop {
            words = match words {
                ["dev", _, rest @ ..] => rest,
                ["root", rest @ ..] => {
                    self.at_root = true;
                    rest
                }
                ["parent", value, rest @ ..] => {
                    self.parent = Some(handle(value)?);
                    rest
                }
                ["handle", value, rest @ ..] => {
                    self.handle = Some(handle(value)?);
                    rest
                }
                ["classid", value, rest @ ..] => {
                    self.class = Some(handle(value)?);
                    rest
                }
                _ => return Ok(words),
            };
        }
    }

    fn parent(&self) -> Result<Handle, SetUpError> {
        self.parent.ok_or_else(|| SetUpError::new("`root` or `parent` is missing"))
    }
}

fn handle(text: &str) -> Result<Handle, SetUpError> {
    Handle::parse(text).ok_or_else(|| {
        SetUpError::new(format!("`{text}` is not a handle: write `major:minor` in hexadecimal"))
    })
}

/// The discipline to which the handle `at` belongs.
fn owner_of(root: &mut Option<SetUp>, at: Handle) -> Result<&mut SetUp, SetUpError> {
    root.as_mut()
        .and_then(|root| descend(root, at.major))
        .ok_or_else(|| SetUpError::new(format!("there is no discipline `{:x}:`", at.major)))
}

fn descend(set_up: &mut SetUp, major: u16) -> Option<&mut SetUp> {
    if set_up.handle.is_some_and(|handle| handle.major == major) {
        return Some(set_up);
    }
    let children = set_up.classes.iter_mut().filter_map(|class| class.leaf.as_mut());
    children.chain(set_up.child.as_mut()).find_map(|child| descend(child, major))
}
