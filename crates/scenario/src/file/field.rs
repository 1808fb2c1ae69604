//! How a key of a scenario file is declared: once, as a field of a Rust type.
//!
//! The macros `spec!` and `choice!` make of a declaration the type, its reader, which finds all faults at once, its
//! JSON Schema, and the form in which other languages take it over.

use crate::file::fault::{Fault, did_you_mean};
use crate::file::written::{Value, Written, table, texts};

/// A kind of value that a scenario file can have.
pub trait Field: Sized {
    /// The value that was written; `None` if something is wrong with it, which the reader then knows.
    fn read(written: &Written, reader: &mut Reader) -> Option<Self>;

    /// The value as JSON.
    fn write(&self, form: Form) -> Written;

    /// The JSON Schema of what may be written; types with a name add themselves to `definitions`.
    fn schema(definitions: &mut Definitions) -> Written;

    /// The value of a key that is not there, if it need not be there.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }

    /// Whether the key may be left out without a default.
    const OPTIONAL: bool = false;
}

/// How quantities are written as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As numbers in base units: nanoseconds, bit/s.
    Numbers,
    /// As people write them: `5ms`, `20mbit`.
    Words,
    /// As people write them, and all keys: those that were not written with their defaults.
    AllWords,
}

/// A type with a name.
#[derive(Debug)]
pub struct Definition {
    /// Name of the type, such as `TestSpec`.
    pub name: &'static str,
    /// JSON Schema of the type.
    pub schema: Written,
    /// Reads one, and writes what was said of it in base units.
    pub read: fn(&Written) -> Result<Written, Vec<Fault>>,
}

/// The types with a name, in an order in which each comes after those that it needs.
pub type Definitions = Vec<Definition>;

/// Knows where in what was written it is, and collects what is wrong.
#[derive(Debug, Default)]
pub struct Reader {
    path: Vec<String>,
    lines: Vec<Option<usize>>,
    faults: Vec<Fault>,
}

impl Reader {
    /// Reads all of `written`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read<T: Field>(written: &Written) -> Result<T, Vec<Fault>> {
        let mut reader = Self::default();
        reader.lines.push(written.line);
        let found = T::read(written, &mut reader);
        match found {
            Some(found) if reader.faults.is_empty() => Ok(found),
            _ => Err(reader.faults),
        }
    }

    /// Notes a fault of the present place.
    pub fn fault(&mut self, says: impl Into<String>) {
        let line = self.lines.iter().rev().find_map(|line| *line);
        self.faults.push(Fault { path: self.path.join("."), line, says: says.into() });
    }

    /// Notes that `written` should be something else: `5: write a text`.
    pub fn wanted<T>(&mut self, written: &Written, wanted: &str) -> Option<T> {
        self.fault_wanted(written, wanted);
        None
    }

    #[inline(never)]
    fn fault_wanted(&mut self, written: &Written, wanted: &str) {
        self.fault(format!("{}: write {wanted}", written.shown()));
    }

    /// Reads what stands a step further.
    pub fn within<T: Field>(&mut self, step: impl Into<String>, written: &Written) -> Option<T> {
        self.enter(step.into(), written.line);
        let found = T::read(written, self);
        self.leave();
        found
    }

    /// Does `what` a step further.
    pub fn at<T>(
        &mut self,
        step: impl Into<String>,
        line: Option<usize>,
        what: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.enter(step.into(), line);
        let found = what(self);
        self.leave();
        found
    }

    /// Goes a step further. Apart from `at` because that is compiled anew for each type of field.
    #[inline(never)]
    fn enter(&mut self, step: String, line: Option<usize>) {
        self.path.push(step);
        self.lines.push(line);
    }

    /// Goes a step back.
    #[inline(never)]
    fn leave(&mut self) {
        self.path.pop();
        self.lines.pop();
    }

    /// Notes that a key is not there that must be.
    #[inline(never)]
    fn missing(&mut self, key: &str) {
        self.at(key, None, |reader| reader.fault("this key is missing"));
    }

    /// The faults that were noted.
    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    /// How many faults there are so far.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.faults.len()
    }
}

/// Notes faults of a table that was read: keys in it that name something that is not there.
#[derive(Debug)]
pub struct References<'r> {
    written: &'r Written,
    reader: &'r mut Reader,
}

impl<'r> References<'r> {
    /// References of the table `written`, where `reader` is.
    pub const fn new(written: &'r Written, reader: &'r mut Reader) -> Self {
        Self { written, reader }
    }

    /// Notes a fault of what stands `steps` further, or of what is written on the way there: a key that is not there has
    /// its default.
    pub fn fault(&mut self, steps: &[&str], says: String) {
        fault_at(self.reader, self.written, steps, says);
    }
}

fn fault_at(reader: &mut Reader, written: &Written, steps: &[&str], says: String) {
    let further =
        steps.split_first().and_then(|(step, rest)| Some((step, rest, written.step(step)?)));
    match further {
        Some((step, rest, next)) => {
            reader.at(*step, next.line, |reader| fault_at(reader, next, rest, says));
        }
        None => reader.fault(says),
    }
}

/// The entries of a table while its keys are read.
#[derive(Debug)]
pub struct Entries<'w> {
    entries: &'w [(String, Written)],
    found: Keys,
}

impl<'w> Entries<'w> {
    /// The entries of `written`, if it is a table.
    pub fn of(written: &'w Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::Table(entries) => Some(Self { entries, found: Keys::default() }),
            _ => reader.wanted(written, "a table"),
        }
    }

    /// The value of a key, or `default` if it is not there and need not be.
    pub fn field<T: Field>(
        &mut self,
        key: &'static str,
        default: impl FnOnce() -> Option<T>,
        reader: &mut Reader,
    ) -> Option<T> {
        if let Some(written) = self.find(key, T::OPTIONAL) {
            return reader.within(key, written);
        }
        let value = default();
        if value.is_none() {
            reader.missing(key);
        }
        value
    }

    /// What is written of a key, which is noted as found, unless it says nothing and may. Apart from `field` because
    /// that is compiled anew for each type of field.
    #[inline(never)]
    fn find(&mut self, key: &'static str, optional: bool) -> Option<&'w Written> {
        let (_, written) = self.entries.iter().find(|(name, _)| name == key)?;
        if !(optional && written.value == Value::Nothing) {
            self.found.0.push(key);
        }
        Some(written)
    }

    /// The keys that were there; all others are faults.
    pub fn finish(self, known: &[&str], reader: &mut Reader) -> Keys {
        for (key, written) in self.entries.iter().filter(|(key, _)| !known.contains(&key.as_str()))
        {
            let says = match FORMER_KEYS
                .iter()
                .find(|(former, now)| former == key && known.contains(now))
            {
                Some((_, now)) => format!("this key is now called `{now}`"),
                // As on the command line, `--load 5s`.
                None if PHASES.contains(&key.as_str()) && known.contains(&"phases") => {
                    format!(
                        "unknown key: lengths of phases stand in `phases = {{ {key} = \"5s\" }}`"
                    )
                }
                None => {
                    let near = did_you_mean(key, known);
                    format!("unknown key{near} (known: {})", known.join(", "))
                }
            };
            reader.at(key, written.line, |reader| reader.fault(says));
        }
        self.found
    }
}

/// The keys of a table that were written; the others have their defaults.
///
/// All are equal: two tables that say the same are the same, however much of it was left to defaults.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<&'static str>);

impl Keys {
    /// The keys `keys`.
    pub(crate) fn of(keys: &[&'static str]) -> Self {
        Self(keys.to_vec())
    }

    /// Takes keys as written that were not.
    pub(crate) fn add(&mut self, keys: &[&'static str]) {
        self.0.extend(keys.iter().filter(|key| !self.has(key)).copied().collect::<Vec<_>>());
    }

    /// Takes that key as not written.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|one| *one != key);
    }

    /// Whether that key was written.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.contains(&key)
    }
}

impl PartialEq for Keys {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A table that says nothing.
pub(crate) fn blank<T: Field>() -> T {
    Reader::read(&Written::empty()).expect("all keys of it have defaults")
}

/// The schema of a table, from the parts that `spec!` gives.
pub(crate) fn table_schema(doc: &[&str], fields: Vec<FieldSchema>) -> Written {
    let mut properties = Vec::new();
    let mut required = Vec::new();
    for FieldSchema { key, doc: meaning, schema, default, optional } in fields {
        let mut property = vec![("description".to_owned(), sentence(meaning))];
        if let Value::Table(parts) = schema.value {
            property.extend(parts);
        }
        match default {
            Some(default) => property.push(("default".to_owned(), default)),
            None if optional => {}
            None => required.push(key),
        }
        properties.push((key.to_owned(), Written::of(Value::Table(property))));
    }
    table([
        ("type", "object".into()),
        ("description", sentence(doc)),
        ("properties", Written::of(Value::Table(properties))),
        ("required", texts(required)),
        ("additionalProperties", false.into()),
    ])
}

/// A field as `spec!` declares it.
pub(crate) struct FieldSchema {
    pub key: &'static str,
    pub doc: &'static [&'static str],
    pub schema: Written,
    pub default: Option<Written>,
    pub optional: bool,
}

/// The text of a doc comment.
pub(crate) fn sentence(doc: &[&str]) -> Written {
    doc.concat().trim().into()
}

/// Adds a type with a name to the definitions, and refers to it.
pub(crate) fn refer<T: Field>(
    name: &'static str,
    definitions: &mut Definitions,
    make: impl FnOnce(&mut Definitions) -> Written,
) -> Written {
    if !definitions.iter().any(|known| known.name == name) {
        let schema = make(definitions);
        let read =
            |written: &Written| Reader::read::<T>(written).map(|found| found.write(Form::Numbers));
        definitions.push(Definition { name, schema, read });
    }
    table([("$ref", format!("#/$defs/{name}").into())])
}

/// Declares a table of scenario files: its keys with what they mean, their types and their defaults. A key without a
/// default must be there, if its type is no `Option`. `check` says what of the whole cannot be; `refers` notes each key that
/// names something that is not there.
macro_rules! spec {
    (
        $(#[doc = $doc:literal])+
        $name:ident {
            $( $(#[doc = $field_doc:literal])+ $field:ident: $kind:ty $(= $default:expr)?, )+
        }
        $(check $check:expr;)?
        $(refers $refers:expr;)?
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])+ pub $field: $kind, )+
            /// The keys that were written.
            pub keys: $crate::file::field::Keys,
        }

        impl $name {
            /// All keys that may be written.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];

            $( fn $field() -> Option<$kind> {
                $crate::file::field::spec!(@default $kind $(, $default)?)
            } )+

            /// Takes keys that were written, but say what holds without them, as not written.
            pub fn drop_defaults(&mut self) {
                $( if Self::$field().is_some_and(|usual| usual == self.$field) {
                    self.keys.remove(stringify!($field));
                } )+
            }
        }

        impl $crate::file::field::Field for $name {
            fn read(
                written: &$crate::file::written::Written,
                reader: &mut $crate::file::field::Reader,
            ) -> Option<Self> {
                let before = reader.count();
                let mut entries = $crate::file::field::Entries::of(written, reader)?;
                $( let $field = entries.field(stringify!($field), Self::$field, reader); )+
                let keys = entries.finish(Self::KEYS, reader);
                let found = Self { $($field: $field?,)+ keys };
                $( if reader.count() == before {
                    let check: fn(&Self) -> Result<(), String> = $check;
                    if let Err(says) = check(&found) {
                        reader.fault(says);
                    }
                } )?
                $( if reader.count() == before {
                    let refers: fn(&Self, &mut $crate::file::field::References<'_>) = $refers;
                    refers(&found, &mut $crate::file::field::References::new(written, reader));
                } )?
                (reader.count() == before).then_some(found)
            }

            fn write(&self, form: $crate::file::field::Form) -> $crate::file::written::Written {
                let mut keys = Vec::new();
                let all = form == $crate::file::field::Form::AllWords;
                $( if all || self.keys.has(stringify!($field)) {
                    let value = self.$field.write(form);
                    $crate::file::field::push(&mut keys, stringify!($field), value);
                } )+
                $crate::file::written::Written::of($crate::file::written::Value::Table(keys))
            }

            fn schema(definitions: &mut $crate::file::field::Definitions) -> $crate::file::written::Written {
                $crate::file::field::refer::<Self>(stringify!($name), definitions, |definitions| {
                    let fields = vec![$( $crate::file::field::FieldSchema {
                        key: stringify!($field),
                        doc: &[$($field_doc),+],
                        schema: <$kind as $crate::file::field::Field>::schema(definitions),
                        default: $crate::file::field::default_words::<$kind>(Self::$field()),
                        optional: <$kind as $crate::file::field::Field>::OPTIONAL,
                    } ),+];
                    $crate::file::field::table_schema(&[$($doc),+], fields)
                })
            }
        }
    };
    (@default $kind:ty) => { <$kind as $crate::file::field::Field>::absent() };
    (@default $kind:ty, $default:expr) => { Some($default) };
}
pub(crate) use spec;

/// Adds a key to a table. Apart from `write` because that is compiled for each key.
#[inline(never)]
pub(crate) fn push(table: &mut Vec<(String, Written)>, key: &str, value: Written) {
    table.push((key.to_owned(), value));
}

/// The default of a key as people write it; `None` of a key that may be left out without one.
pub(crate) fn default_words<T: Field>(default: Option<T>) -> Option<Written> {
    default.filter(|_| !T::OPTIONAL).map(|value| value.write(Form::Words))
}

/// Declares a key with a few words to choose from.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $( $(#[doc = $word_doc:literal])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $word_doc])+ $variant, )+ }

        impl $name {
            /// The words to choose from.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The choices, in the order of the words.
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word as it is written.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }

        $crate::file::field::choice_field!($name);
    };
}
pub(crate) use choice;

/// Makes a type with `ALL`, `WORDS` and `word` a field of files, in which one of the words stands.
macro_rules! choice_field {
    ($choice:ty) => {
        impl $crate::file::field::Field for $choice {
            fn read(
                written: &$crate::file::written::Written,
                reader: &mut $crate::file::field::Reader,
            ) -> Option<Self> {
                let chosen = match &written.value {
                    $crate::file::written::Value::Text(text) => {
                        Self::ALL.iter().copied().find(|choice| choice.word() == text)
                    }
                    _ => None,
                };
                match chosen {
                    Some(choice) => Some(choice),
                    None => reader.wanted(written, &$crate::file::field::one_of(Self::WORDS)),
                }
            }

            fn write(&self, _: $crate::file::field::Form) -> $crate::file::written::Written {
                self.word().into()
            }

            fn schema(_: &mut $crate::file::field::Definitions) -> $crate::file::written::Written {
                $crate::file::written::table([(
                    "enum",
                    $crate::file::written::texts(Self::WORDS.iter().copied()),
                )])
            }
        }
    };
}
pub(crate) use choice_field;

/// Words to choose from, in quotes.
pub(crate) fn one_of(words: &[&str]) -> String {
    either(&words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>())
}

/// Words with `or` before the last.
pub(crate) fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [several @ .., last] => format!("{} or {last}", several.join(", ")),
    }
}

/// Phases of which the lengths are options on the command line, and stand in a table of a file.
const PHASES: &[&str] = &["idle", "load", "cooldown"];

/// Keys that had another name once, and their name now. A file that has the former name is refused with the present one.
const FORMER_KEYS: &[(&str, &str)] = &[
    ("station", "client_host"),
    ("egress", "up"),
    ("ingress", "down"),
    ("egress_max", "up_max"),
    ("ingress_max", "down_max"),
    ("egress_queue", "queue_up"),
    ("ingress_queue", "queue_down"),
];

/// A text or a number that a word stands for, with what JSON Schema says of it.
macro_rules! word_field {
    ($name:ty, $kinds:expr, $read:expr, $words:expr) => {
        impl Field for $name {
            fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
                let read: fn(&Written) -> Result<Self, String> = $read;
                read(written).map_err(|says| reader.fault(says)).ok()
            }

            fn write(&self, _: Form) -> Written {
                let words: fn(&Self) -> Written = $words;
                words(self)
            }

            fn schema(_: &mut Definitions) -> Written {
                let kinds: &[&str] = $kinds;
                let kind = if let [one] = kinds {
                    (*one).into()
                } else {
                    $crate::file::written::texts(kinds.iter().copied())
                };
                $crate::file::written::table([("type", kind)])
            }
        }
    };
}

pub(crate) use word_field;
