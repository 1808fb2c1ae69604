//! How the result of a method is declared: a struct with one field for each key of its JSON object.
//!
//! A field's doc comment is what the key means, for Rust, for Python's types and for `docs/record.md`; its name, which ends
//! in the unit of its number, is the key; its type is the value's, and an `Option` may be null. A field without a doc comment
//! is a record whose keys are keys of the object, for what several results have. A single key that several have takes its
//! meaning from a constant: `pub failures: Vec<String> = meaning::FAILURES,`.

use serde_json::{Map, Value, json};

/// A JSON object: the result of a method, or a part of one.
#[derive(Debug)]
pub struct Object {
    /// Name of its struct, such as `Ndt7Result`.
    pub name: &'static str,
    /// Meaning of the object.
    pub meaning: &'static str,
    /// Its keys, in the order in which they are declared.
    pub fields: &'static [Field],
}

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key, which ends in the unit of its number.
    pub name: &'static str,
    /// Type of its value.
    pub kind: ValueType,
    /// Whether the value may be null.
    pub nullable: bool,
    /// Meaning of the value.
    pub meaning: &'static str,
}

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub enum ValueType {
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
    const KIND: ValueType;
    const NULLABLE: bool = false;

    /// The value in JSON.
    fn json(&self) -> Value;
}

/// A struct that declares an object.
pub(crate) trait Declared {
    const OBJECT: Object;

    /// Puts every key with its value into `object`.
    fn put(&self, object: &mut Map<String, Value>);

    /// The object with its values.
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        self.put(&mut object);
        Value::Object(object)
    }
}

macro_rules! values {
    ($($type:ty: $kind:ident),+ $(,)?) => { $(
        impl ResultValue for $type {
            const KIND: ValueType = ValueType::$kind;

            fn json(&self) -> Value {
                json!(self)
            }
        }
    )+ };
}
values! {
    bool: Bool,
    u32: Integer,
    u64: Integer,
    usize: Integer,
    f64: Float,
    &str: Text,
    Vec<String>: Texts,
}

impl<T: ResultValue> ResultValue for Option<T> {
    const KIND: ValueType = T::KIND;
    const NULLABLE: bool = true;

    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }
}

/// Declares an object by a struct.
macro_rules! object {
    (
        $(#[doc = $meaning:literal])+
        pub(crate) struct $object:ident {
            $( $(#[doc = $field_meaning:literal])* pub $field:ident: $type:ty $(= $shared:expr)?, )+
        }
    ) => {
        $(#[doc = $meaning])+
        #[derive(Clone, Debug)]
        pub(crate) struct $object {
            $( $(#[doc = $field_meaning])* pub $field: $type, )+
        }

        impl $crate::result::Declared for $object {
            const OBJECT: $crate::result::Object = $crate::result::Object {
                name: stringify!($object),
                meaning: concat!($($meaning),+).trim_ascii(),
                fields: {
                    const PARTS: &[&[$crate::result::Field]] = &[$(
                        $crate::result::object!(
                            @fields $field: $type $(= $shared)? $(, $field_meaning)*
                        )
                    ),+];
                    &weir_core::tables::joined::<_, { weir_core::tables::count(PARTS) }>(PARTS)
                },
            };

            fn put(&self, object: &mut serde_json::Map<String, serde_json::Value>) {
                $( $crate::result::object!(
                    @put self, object, $field $(= $shared)? $(, $field_meaning)*
                ); )+
            }
        }

        impl $crate::result::ResultValue for $object {
            const KIND: $crate::result::ValueType =
                $crate::result::ValueType::Object(&<$object as $crate::result::Declared>::OBJECT);

            fn json(&self) -> serde_json::Value {
                $crate::result::Declared::to_json(self)
            }
        }
    };
    (@fields $field:ident: $type:ty) => { <$type as $crate::result::Declared>::OBJECT.fields };
    (@fields $field:ident: $type:ty, $($meaning:literal),+) => {
        $crate::result::object!(@fields $field: $type = concat!($($meaning),+).trim_ascii())
    };
    (@fields $field:ident: $type:ty = $meaning:expr) => {
        &[$crate::result::Field {
            name: stringify!($field),
            kind: <$type as $crate::result::ResultValue>::KIND,
            nullable: <$type as $crate::result::ResultValue>::NULLABLE,
            meaning: $meaning,
        }]
    };
    (@put $self:ident, $object:ident, $field:ident) => {
        $crate::result::Declared::put(&$self.$field, $object)
    };
    (@put $self:ident, $object:ident, $field:ident $(= $shared:expr)? $(, $meaning:literal)*) => {
        $object.insert(
            stringify!($field).to_owned(),
            $crate::result::ResultValue::json(&$self.$field),
        )
    };
}

pub(crate) use object;

object! {
    /// What the result of every method begins with.
    pub(crate) struct Basis {
        /// Name of the method.
        pub method: &'static str,
        /// Whose formulas the figures follow, and in which version.
        pub formula: &'static str,
    }
}

object! {
    /// Figures of a method that has one of each.
    pub(crate) struct MainFigures {
        /// Rate of the download by the method's formula, in Mbit/s.
        pub download_mbps: Option<f64>,
        /// Rate of the upload by the method's formula, in Mbit/s.
        pub upload_mbps: Option<f64>,
        /// Latency that the official client shows first, in ms.
        pub latency_ms: Option<f64>,
    }
}

object! {
    /// Latency under load of a method that takes medians.
    pub(crate) struct LoadedMedians {
        /// Median of round trips during the download, in ms.
        pub download_loaded_latency_ms: Option<f64>,
        /// Median of round trips during the upload, in ms.
        pub upload_loaded_latency_ms: Option<f64>,
    }
}

/// What keys mean that several results have.
pub(crate) mod meaning {
    pub(crate) const JITTER: &str = "Jitter without load, by the method's formula, in ms.";
    pub(crate) const LATENCY_DEFINITION: &str = "What that latency is, in words.";
    pub(crate) const MISSING: &str = "Figures that the method could not have, each with why.";
    pub(crate) const FAILURES: &str =
        "Why the test ended early, in sentences; empty if it did not.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::METHODS;

    object! {
        /// An object with a field of every shape.
        pub(crate) struct Shapes {
            pub basis: Basis,
            /// A part
            /// of its own.
            pub part: Option<LoadedMedians>,
            pub failures: Vec<String> = meaning::FAILURES,
        }
    }

    #[test]
    fn keys_of_a_record_are_keys_of_the_object_in_its_place() {
        let fields = Shapes::OBJECT.fields;
        let names: Vec<_> = fields.iter().map(|field| field.name).collect();
        assert_eq!(names, ["method", "formula", "part", "failures"]);
        assert_eq!(fields[0].meaning, "Name of the method.");
        assert_eq!((fields[2].meaning, fields[2].nullable), ("A part of its own.", true));
        assert_eq!(fields[3].meaning, meaning::FAILURES);
        let basis = Basis { method: "x", formula: "y" };
        let part =
            LoadedMedians { download_loaded_latency_ms: Some(1.0), upload_loaded_latency_ms: None };
        let shapes = Shapes { basis, part: Some(part), failures: vec!["z".to_owned()] };
        assert_eq!(
            shapes.to_json().to_string(),
            r#"{"failures":["z"],"formula":"y","method":"x","part":{"download_loaded_latency_ms":1.0,"upload_loaded_latency_ms":null}}"#
        );
        assert_eq!(Shapes { part: None, ..shapes }.to_json()["part"], Value::Null);
    }

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
                ValueType::Bool => value.is_boolean(),
                ValueType::Integer => value.is_u64(),
                ValueType::Float => value.is_f64(),
                ValueType::Text => value.is_string(),
                ValueType::Texts => {
                    value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
                }
                ValueType::Object(part) => {
                    holds(value, part);
                    true
                }
            };
            assert!(fits, "{}: {}: {value}", object.name, field.name);
            assert!(field.meaning.ends_with('.'), "{}: {}", object.name, field.meaning);
        }
    }
}
