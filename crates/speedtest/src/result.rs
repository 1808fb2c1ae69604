//! How the result of a method is declared: a struct with one field for each key of its JSON object.
//!
//! A field's doc comment is what the key means, for Rust, for Python's types and for `docs/record.md`; its name, which ends
//! in the unit of its number, is the key; its type is the value's, and an `Option` may be null.

use serde::Serialize;
use serde_json::{Value, json};

/// A JSON object: the result of a method, or a part of one.
#[derive(Debug)]
pub struct Object {
    /// Name of its struct, such as `Ndt7Result`.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its keys, in the order in which they are declared.
    pub fields: &'static [Field],
}

/// A key of an object.
#[derive(Debug)]
pub struct Field {
    /// The key, which ends in the unit of its number.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Whether the value may be null.
    pub nullable: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// Text.
    Text,
    /// A list of texts.
    Texts,
    /// Another object.
    Object(&'static Object),
}

/// A type that a value of a result can have.
pub(crate) trait ResultValue {
    const KIND: Kind;
    const NULLABLE: bool = false;
}

/// A struct that declares an object.
pub(crate) trait Declared: Serialize {
    const OBJECT: Object;

    /// The object with its values.
    fn to_json(&self) -> Value {
        json!(self)
    }
}

impl ResultValue for bool {
    const KIND: Kind = Kind::Bool;
}

impl ResultValue for u32 {
    const KIND: Kind = Kind::Integer;
}

impl ResultValue for u64 {
    const KIND: Kind = Kind::Integer;
}

impl ResultValue for usize {
    const KIND: Kind = Kind::Integer;
}

impl ResultValue for f64 {
    const KIND: Kind = Kind::Float;
}

impl ResultValue for &str {
    const KIND: Kind = Kind::Text;
}

impl ResultValue for Vec<String> {
    const KIND: Kind = Kind::Texts;
}

impl<T: ResultValue> ResultValue for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
}

/// Declares an object by a struct.
macro_rules! object {
    (
        $(#[doc = $meaning:literal])+
        pub(crate) struct $object:ident {
            $( $(#[doc = $field_meaning:literal])+ pub $field:ident: $type:ty, )+
        }
    ) => {
        $(#[doc = $meaning])+
        #[derive(Clone, Debug, serde::Serialize)]
        pub(crate) struct $object {
            $( $(#[doc = $field_meaning])+ pub $field: $type, )+
        }

        impl $crate::result::Declared for $object {
            const OBJECT: $crate::result::Object = $crate::result::Object {
                name: stringify!($object),
                meaning: concat!($($meaning),+).trim_ascii(),
                fields: &[$( $crate::result::Field {
                    name: stringify!($field),
                    kind: <$type as $crate::result::ResultValue>::KIND,
                    nullable: <$type as $crate::result::ResultValue>::NULLABLE,
                    meaning: concat!($($field_meaning),+).trim_ascii(),
                }, )+],
            };
        }

        impl $crate::result::ResultValue for $object {
            const KIND: $crate::result::Kind =
                $crate::result::Kind::Object(&<$object as $crate::result::Declared>::OBJECT);
        }
    };
}

pub(crate) use object;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::METHODS;

    #[test]
    fn what_a_method_tells_is_what_it_declares() {
        for method in METHODS {
            holds(&method.begin(0).result(), method.result);
        }
    }

    /// Asserts that `said` has the keys of `object`, each with a value of its kind.
    fn holds(said: &Value, object: &Object) {
        let said = said.as_object().unwrap_or_else(|| panic!("{}: no object", object.name));
        let mut declared: Vec<&str> = object.fields.iter().map(|field| field.name).collect();
        declared.sort_unstable();
        assert_eq!(said.keys().collect::<Vec<_>>(), declared, "{}", object.name);
        for field in object.fields {
            let value = &said[field.name];
            let fits = match field.kind {
                _ if value.is_null() => field.nullable,
                Kind::Bool => value.is_boolean(),
                Kind::Integer => value.is_u64(),
                Kind::Float => value.is_f64(),
                Kind::Text => value.is_string(),
                Kind::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
                Kind::Object(part) => {
                    holds(value, part);
                    true
                }
            };
            assert!(fits, "{}: {}: {value}", object.name, field.name);
            assert!(field.meaning.ends_with('.'), "{}: {}", object.name, field.meaning);
        }
    }
}
