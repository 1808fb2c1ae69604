//! Kinds of values that are no quantities: texts, numbers, lists, and one or the other of two kinds.

use weir_core::Direction;

use crate::file::field::{Definitions, Field, Form, Reader};
use crate::file::written::{Value, Written, table};

impl Field for bool {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match written.value {
            Value::Bool(value) => Some(value),
            _ => reader.wanted(written, "true or false"),
        }
    }

    fn write(&self, _: Form) -> Written {
        (*self).into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("type", "boolean".into())])
    }
}

impl Field for String {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::Text(text) => Some(text.clone()),
            _ => reader.wanted(written, "a text in quotes"),
        }
    }

    fn write(&self, _: Form) -> Written {
        self.clone().into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("type", "string".into())])
    }
}

/// A name: a text that is not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word(pub String);

impl Field for Word {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let text = String::read(written, reader)?;
        if text.is_empty() {
            reader.fault("it is empty: write at least one letter");
            return None;
        }
        Some(Self(text))
    }

    fn write(&self, _: Form) -> Written {
        self.0.clone().into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("type", "string".into()), ("minLength", 1i64.into())])
    }
}

/// A free text of up to `MAX` characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOf<const MAX: usize>(pub String);

impl<const MAX: usize> Field for TextOf<MAX> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let text = String::read(written, reader)?;
        let count = text.chars().count();
        if count > MAX {
            reader.fault(format!("it has {count} characters: write {MAX} or fewer"));
            return None;
        }
        Some(Self(text))
    }

    fn write(&self, _: Form) -> Written {
        self.0.clone().into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("type", "string".into()), ("maxLength", (MAX as u64).into())])
    }
}

/// A word by which runs are found again: 1 to 100 characters without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag(pub String);

impl Field for Tag {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let Word(text) = Word::read(written, reader)?;
        if text.contains(char::is_whitespace) {
            return reader.wanted(written, "a word without spaces");
        }
        TextOf::<MAX_TAG_CHARS>::read(written, reader).map(|TextOf(tag)| Self(tag))
    }

    fn write(&self, _: Form) -> Written {
        self.0.clone().into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([
            ("type", "string".into()),
            ("minLength", 1i64.into()),
            ("maxLength", (MAX_TAG_CHARS as u64).into()),
            ("pattern", r"^\S+$".into()),
        ])
    }
}

const MAX_TAG_CHARS: usize = 100;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const MIN: i64, const MAX: i64>(pub i64);

impl<const MIN: i64, const MAX: i64> Field for Whole<MIN, MAX> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match written.value {
            Value::Whole(number) if number < MIN => {
                reader.wanted(written, &format!("{MIN} or more"))
            }
            Value::Whole(number) if number > MAX => {
                reader.wanted(written, &format!("{MAX} or less"))
            }
            Value::Whole(number) => Some(Self(number)),
            Value::Other(ref text) if has_digits_only(text.strip_prefix('-').unwrap_or(text)) => {
                // A whole number that 64 bits do not hold.
                let bound = if text.starts_with('-') {
                    format!("{MIN} or more")
                } else {
                    format!("{MAX} or less")
                };
                reader.wanted(written, &bound)
            }
            _ => reader.wanted(written, "a whole number"),
        }
    }

    fn write(&self, _: Form) -> Written {
        self.0.into()
    }

    fn schema(_: &mut Definitions) -> Written {
        let mut schema = vec![("type".to_owned(), "integer".into())];
        if MIN > i64::MIN {
            schema.push(("minimum".to_owned(), MIN.into()));
        }
        if MAX < i64::MAX {
            schema.push(("maximum".to_owned(), MAX.into()));
        }
        Written::of(Value::Table(schema))
    }
}

fn has_digits_only(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_digit())
}

/// Any whole number that 64 bits hold.
pub type Integer = Whole<{ i64::MIN }, { i64::MAX }>;

/// A count from 1 on.
pub type Count = Whole<1, { u32::MAX as i64 }>;

impl<const MIN: i64, const MAX: i64> Whole<MIN, MAX> {
    /// The number, of which the type says that it fits.
    pub(crate) fn fitting<T: TryFrom<i64>>(self) -> T
    where
        T::Error: std::fmt::Debug,
    {
        T::try_from(self.0).expect("the bounds of the key fit the type")
    }
}

/// A probability, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probability(pub f64);

impl Field for Probability {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let number = match written.value {
            Value::Number(number) if number.is_finite() => number,
            Value::Whole(number) => number as f64,
            _ => return reader.wanted(written, "a number"),
        };
        if number < 0.0 {
            return reader.wanted(written, "0 or more");
        }
        if number > 1.0 {
            return reader.wanted(written, "1 or less");
        }
        Some(Self(number))
    }

    fn write(&self, _: Form) -> Written {
        self.0.into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("type", "number".into()), ("minimum", 0i64.into()), ("maximum", 1i64.into())])
    }
}

impl<T: Field> Field for Option<T> {
    const OPTIONAL: bool = true;

    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match written.value {
            Value::Nothing => Some(None),
            _ => T::read(written, reader).map(Some),
        }
    }

    fn write(&self, form: Form) -> Written {
        self.as_ref().map_or(Written::of(Value::Nothing), |value| value.write(form))
    }

    fn schema(definitions: &mut Definitions) -> Written {
        T::schema(definitions)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let Value::List(parts) = &written.value else {
            return reader.wanted(written, "a list: put brackets around it");
        };
        let numbered = parts.iter().enumerate();
        let found: Vec<Option<T>> =
            numbered.map(|(number, part)| reader.within(number.to_string(), part)).collect();
        found.into_iter().collect()
    }

    fn write(&self, form: Form) -> Written {
        self.iter().map(|one| one.write(form)).collect::<Vec<_>>().into()
    }

    fn schema(definitions: &mut Definitions) -> Written {
        table([("type", "array".into()), ("items", T::schema(definitions))])
    }
}

/// A list of up to `MAX`, which may be empty or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ListOf<T, const MAY_BE_EMPTY: bool, const MAX: usize>(pub Vec<T>);

/// A list of one or more.
pub type AtLeastOne<T> = ListOf<T, false, { usize::MAX }>;

/// A list of up to `MAX`.
pub type AtMost<T, const MAX: usize> = ListOf<T, true, MAX>;

impl<T: Field, const MAY_BE_EMPTY: bool, const MAX: usize> Field for ListOf<T, MAY_BE_EMPTY, MAX> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        if let Value::List(parts) = &written.value {
            if parts.is_empty() && !MAY_BE_EMPTY {
                reader.fault("the list is empty: write at least one");
                return None;
            }
            if parts.len() > MAX {
                reader.fault(format!("the list has {}: write {MAX} or fewer", parts.len()));
                return None;
            }
        }
        Vec::read(written, reader).map(Self)
    }

    fn write(&self, form: Form) -> Written {
        self.0.write(form)
    }

    fn schema(definitions: &mut Definitions) -> Written {
        let kind = [("type", "array".into()), ("items", T::schema(definitions))];
        let min = (!MAY_BE_EMPTY).then(|| ("minItems", 1i64.into()));
        let max = (MAX < usize::MAX).then(|| ("maxItems", (MAX as u64).into()));
        table(kind.into_iter().chain(min).chain(max))
    }
}

/// One, or a list of one or more.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMore<T> {
    /// One, written by itself.
    One(T),
    /// A list.
    Several(Vec<T>),
}

impl<T> OneOrMore<T> {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl<T: Field + Kinds> Field for OneOrMore<T> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::List(_) => {
                AtLeastOne::read(written, reader).map(|ListOf(all)| Self::Several(all))
            }
            value if T::suits(value) => T::read(written, reader).map(Self::One),
            _ => {
                let kinds = [T::KINDS, &["a list"]]
                    .concat()
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>();
                reader.wanted(written, &crate::file::field::either(&kinds))
            }
        }
    }

    fn write(&self, form: Form) -> Written {
        match self {
            Self::One(one) => one.write(form),
            Self::Several(several) => several.write(form),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        let mut kinds = T::alternatives(definitions);
        kinds.push(AtLeastOne::<T>::schema(definitions));
        table([("anyOf", kinds.into())])
    }
}

/// A value that is written by itself or in a list.
pub trait Kinds: Field {
    /// Words for it.
    const KINDS: &[&str];

    /// Whether a value looks like it was meant to be one.
    fn suits(value: &Value) -> bool;

    /// The schemas of which one holds.
    fn alternatives(definitions: &mut Definitions) -> Vec<Written> {
        vec![Self::schema(definitions)]
    }
}

impl Kinds for String {
    const KINDS: &[&str] = &["a text"];

    fn suits(value: &Value) -> bool {
        matches!(value, Value::Text(_))
    }
}

impl Kinds for Word {
    const KINDS: &[&str] = &["a text"];

    fn suits(value: &Value) -> bool {
        matches!(value, Value::Text(_))
    }
}

impl Kinds for Direction {
    const KINDS: &[&str] = &["'up'", "'down'"];

    fn suits(value: &Value) -> bool {
        matches!(value, Value::Text(_))
    }
}

/// Something by its name, or itself as a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Named<N, T> {
    /// A name.
    Name(N),
    /// The thing itself.
    Given(Box<T>),
}

impl<N: Field, T: Field> Field for Named<N, T> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::Table(_) => T::read(written, reader).map(|given| Self::Given(Box::new(given))),
            Value::Text(_) => N::read(written, reader).map(Self::Name),
            _ => reader.wanted(written, "a text or a table"),
        }
    }

    fn write(&self, form: Form) -> Written {
        match self {
            Self::Name(name) => name.write(form),
            Self::Given(given) => given.write(form),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        table([("anyOf", Self::alternatives(definitions).into())])
    }
}

impl<N: Field, T: Field> Kinds for Named<N, T> {
    const KINDS: &[&str] = &["a text", "a table"];

    fn suits(value: &Value) -> bool {
        matches!(value, Value::Text(_) | Value::Table(_))
    }

    fn alternatives(definitions: &mut Definitions) -> Vec<Written> {
        vec![N::schema(definitions), T::schema(definitions)]
    }
}

/// Values by names that the writer chooses, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct ByName<T>(pub Vec<(String, T)>);

impl<T> ByName<T> {
    /// The value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<T: Field> Field for ByName<T> {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        let Value::Table(entries) = &written.value else {
            return reader.wanted(written, "a table");
        };
        let found: Vec<Option<(String, T)>> = entries
            .iter()
            .map(|(name, value)| Some((name.clone(), reader.within(name, value)?)))
            .collect();
        found.into_iter().collect::<Option<_>>().map(Self)
    }

    fn write(&self, form: Form) -> Written {
        let entries = self.0.iter().map(|(name, value)| (name.clone(), value.write(form)));
        Written::of(Value::Table(entries.collect()))
    }

    fn schema(definitions: &mut Definitions) -> Written {
        table([("type", "object".into()), ("additionalProperties", T::schema(definitions))])
    }
}
