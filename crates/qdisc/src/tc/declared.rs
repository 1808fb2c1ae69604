//! How a parameter is declared: once, as a field of a typed record.
//!
//! The macro `params!` makes of a record's declaration the struct, the table of [`Param`]s that serves the
//! parser, the error messages and `weir list queues`, and the reader that fills the struct. A field's name
//! is the parameter's, unless `as "name"` gives another; its doc comment is the parameter's meaning. Its type
//! must fit its declaration, or it does not compile. Declarations that several records share are constants of
//! type [`Declared`], and bring their meaning along.

use weir_core::{Rate, units};

use super::SpecError;
use super::kinds::Whole;
use super::params::{DefaultValue, Param, ParamKind, Params};
use crate::Device;

/// A record of parameters, declared by `params!`.
pub trait Record: Sized {
    /// The parameters in the order of the fields.
    const PARAMS: &'static [Param];

    /// The values of `params`, among which those of the record must be.
    ///
    /// # Errors
    /// If a value is not of its parameter's kind or out of range.
    fn read(params: &Params) -> Result<Self, SpecError>;
}

/// The record of what takes no parameters.
pub(crate) struct NoOptions;

impl Record for NoOptions {
    const PARAMS: &'static [Param] = &[];

    fn read(_: &Params) -> Result<Self, SpecError> {
        Ok(Self)
    }
}

/// Declares a record of parameters. A field without a declaration is a record that is a part of this one.
///
/// ```text
/// params! {
///     /// The parameters of `codel`.
///     pub struct CodelOptions {
///         /// most packets that may wait
///         pub limit: u32 = number("packets", 1, 1_000_000).default("1000"),
///         pub target: Duration = TARGET,
///     }
/// }
/// ```
macro_rules! params {
    (
        $(#[$attribute:meta])*
        $visible:vis struct $record:ident {
            $(
                $(#[doc = $meaning:literal])*
                $field_visible:vis $field:ident $(as $name:literal)? : $type:ty $(= $declared:expr)?,
            )+
        }
    ) => {
        $(#[$attribute])*
        $visible struct $record {
            $(
                $(#[doc = $meaning])*
                #[doc = concat!("\n\n`", stringify!($field), "` as `Record::PARAMS` describes it.")]
                $field_visible $field: $type,
            )+
        }

        impl $crate::tc::Record for $record {
            const PARAMS: &'static [$crate::tc::Param] = {
                const PARTS: &[&[$crate::tc::Param]] = &[
                    $( $crate::tc::params!(
                        @table $type, [$($name,)? stringify!($field)][0], concat!($($meaning),*)
                        $(, $declared)?
                    ) ),+
                ];
                &weir_core::tables::joined::<_, { weir_core::tables::count(PARTS) }>(PARTS)
            };

            fn read(params: &$crate::tc::Params) -> Result<Self, $crate::tc::SpecError> {
                Ok(Self {
                    $( $field: $crate::tc::params!(
                        @read params, $type, [$($name,)? stringify!($field)][0] $(, $declared)?
                    ), )+
                })
            }
        }
    };
    (@table $type:ty, $name:expr, $meaning:expr) => { <$type as $crate::tc::Record>::PARAMS };
    (@table $type:ty, $name:expr, $meaning:expr, $declared:expr) => {{
        const DECLARED: $crate::tc::Declared<$type> = $declared;
        &[DECLARED.param($name, $meaning)]
    }};
    (@read $params:expr, $type:ty, $name:expr) => {
        <$type as $crate::tc::Record>::read($params)?
    };
    (@read $params:expr, $type:ty, $name:expr, $declared:expr) => {{
        const DECLARED: $crate::tc::Declared<$type> = $declared;
        DECLARED.value($params, $name)?
    }};
}
pub(crate) use params;

/// A parameter but for its name, of which a value of type `V` is made.
pub(crate) struct Declared<V: Value> {
    param: Param,
    read: Read<V::Plain>,
}

/// Makes a value of what was written.
pub(crate) type Read<T> = fn(&Text<'_>) -> Result<T, SpecError>;

impl<T: Plain> Declared<T> {
    /// A parameter that must be written.
    pub const fn new(kind: ParamKind, read: Read<T>) -> Self {
        let default = DefaultValue::Required;
        Self {
            param: Param {
                name: "",
                aliases: &[],
                kind,
                default,
                zero_is_default: false,
                meaning: "",
            },
            read,
        }
    }
}

impl<V: Value> Declared<V> {
    /// Sets the parameter's meaning, in one line.
    pub const fn means(mut self, meaning: &'static str) -> Self {
        self.param.meaning = meaning;
        self
    }

    /// Sets the value of a parameter that is not written, as a user would write it.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.param.default = DefaultValue::Is(text);
        self
    }

    /// Sets the value of a parameter that is not written to one of the device, which `text` describes.
    pub const fn default_of(mut self, text: &'static str, value: fn(&Device) -> String) -> Self {
        self.param.default = DefaultValue::Device(text, value);
        self
    }

    /// Has 0 count as not written.
    pub const fn or_0(mut self) -> Self {
        self.param.zero_is_default = true;
        self
    }

    /// Takes the default away: the parameter must be written.
    pub const fn required(mut self) -> Self {
        self.param.default = DefaultValue::Required;
        self
    }

    /// Sets the other names that `tc` takes for the parameter.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.param.aliases = aliases;
        self
    }

    /// The parameter, called `name`, whose meaning is the text of `doc` if there is one.
    pub const fn param(&self, name: &'static str, doc: &'static str) -> Param {
        let meaning = if doc.is_empty() { self.param.meaning } else { doc.trim_ascii() };
        assert!(!meaning.is_empty(), "a parameter without a meaning");
        Param { name, meaning, ..self.param }
    }

    /// The value of the parameter called `name`.
    pub fn value(&self, params: &Params, name: &'static str) -> Result<V, SpecError> {
        V::read(params, params.param(name), self.read)
    }
}

impl Declared<bool> {
    /// Sets the word that switches the parameter off.
    pub const fn off_by(mut self, word: &'static str) -> Self {
        self.param.kind = ParamKind::Switch { off: Some(word) };
        self
    }
}

impl<T: Plain> Declared<T> {
    /// Makes the value an `Option`; `means` says what it means that none is written.
    pub const fn absent(self, means: &'static str) -> Declared<Option<T>> {
        let param = Param { default: DefaultValue::Absent(means), ..self.param };
        Declared { param, read: self.read }
    }

    /// Makes the value a list of all that were written, not just the last.
    pub const fn every(self) -> Declared<Every<T>> {
        Declared { param: self.param, read: self.read }
    }
}

impl<T: Whole> Declared<T> {
    /// Makes the value an `Option` that is `None` for 0 too; `means` says what it means that none is written.
    pub const fn absent_or_0(self, means: &'static str) -> Declared<Unless0<T>> {
        let param = Param { default: DefaultValue::Absent(means), ..self.param };
        Declared { param, read: self.read }
    }
}

impl<V: Value> Declared<V> {
    /// Adds to the value the place at which it was written.
    pub const fn placed(self) -> Declared<Placed<V>> {
        Declared { param: self.param, read: self.read }
    }
}

/// A type that a field of a record may have.
pub(crate) trait Value: Sized {
    /// The type that is made of one text.
    type Plain: Plain;

    /// Reads the value of `param`, of whose texts `read` makes plain values.
    fn read(
        params: &Params,
        param: &'static Param,
        read: Read<Self::Plain>,
    ) -> Result<Self, SpecError>;
}

/// A type whose values are made of one text each.
pub(crate) trait Plain: Sized {}

impl<T: Plain> Value for T {
    type Plain = T;

    fn read(params: &Params, param: &'static Param, read: Read<T>) -> Result<T, SpecError> {
        let text = params.text(param).ok_or_else(|| params.missing(param))?;
        read(&Text { params, param, text })
    }
}

impl<T: Plain> Value for Option<T> {
    type Plain = T;

    fn read(params: &Params, param: &'static Param, read: Read<T>) -> Result<Self, SpecError> {
        params.text(param).map(|text| read(&Text { params, param, text })).transpose()
    }
}

/// A number of which 0 counts as not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unless0<T>(pub Option<T>);

impl<T: Whole> Value for Unless0<T> {
    type Plain = T;

    fn read(params: &Params, param: &'static Param, read: Read<T>) -> Result<Self, SpecError> {
        let number = <Option<T> as Value>::read(params, param, read)?;
        Ok(Self(number.filter(|&number| number != T::of(0))))
    }
}

/// A value, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<V> {
    /// The value.
    pub value: V,
    /// Its place among the parameters written, the last one if there are several; `None` if it was not written.
    pub place: Option<usize>,
}

impl<V: Value> Value for Placed<V> {
    type Plain = V::Plain;

    fn read(
        params: &Params,
        param: &'static Param,
        read: Read<V::Plain>,
    ) -> Result<Self, SpecError> {
        let place = params.written(param).last().map(|(place, _)| place);
        Ok(Self { value: V::read(params, param, read)?, place })
    }
}

impl<V> Placed<V> {
    /// Whether it was written.
    pub const fn is_written(&self) -> bool {
        self.place.is_some()
    }
}

/// Every value that was written, with its place among the parameters written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Every<T>(pub Vec<(usize, T)>);

impl<T: Plain> Value for Every<T> {
    type Plain = T;

    fn read(params: &Params, param: &'static Param, read: Read<T>) -> Result<Self, SpecError> {
        let values = params
            .written(param)
            .map(|(place, text)| read(&Text { params, param, text }).map(|value| (place, value)));
        values.collect::<Result<_, _>>().map(Self)
    }
}

/// The text that was written for a parameter, or its default.
pub(crate) struct Text<'p> {
    params: &'p Params,
    param: &'static Param,
    pub text: &'p str,
}

impl Text<'_> {
    /// The words of the text.
    pub fn words(&self) -> Vec<&str> {
        self.text.split(' ').collect()
    }

    /// The parameter's kind.
    pub const fn kind(&self) -> ParamKind {
        self.param.kind
    }

    /// An error about the text.
    pub fn bad(&self, allowed: &str) -> SpecError {
        self.bad_value(self.text, allowed)
    }

    /// An error about the parameter, whose value is shown as `value`.
    pub fn bad_value(&self, value: &str, allowed: &str) -> SpecError {
        SpecError::bad(self.params.owner(), self.param.name, value, allowed)
    }

    /// An error about the parameter, of which a part is no value.
    pub fn wrap(&self, error: &units::UnitError) -> SpecError {
        self.bad_value(&error.text, error.allowed)
    }

    /// `word`, which is the text or a part of it, as a rate of at least 8 bit/s or as a share of the line's.
    pub fn rate_in(&self, word: &str) -> Result<Rate, SpecError> {
        let rate = match units::parse_percent(word) {
            None => units::parse_rate(word).map_err(|error| self.wrap(&error))?,
            Some(percent) => {
                let percent = percent.map_err(|error| self.wrap(&error))?;
                let allowed = "this line has no fixed rate to take a share of; write a rate";
                let line = self.params.line_rate().ok_or_else(|| self.bad_value(word, allowed))?;
                line.percent(percent)
            }
        };
        if rate.as_bytes_per_sec() == 0 {
            return Err(self.bad_value(word, "write a rate of at least 8bit"));
        }
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::{number, read, size, switch};

    params! {
        struct Framing {
            /// bytes added to every packet
            overhead: u8 = number("bytes", 0, 255).default("4"),
        }
    }

    params! {
        /// A record with a field of every shape.
        struct Shapes {
            /// most packets
            limit: u32 = number("packets", 1, 100),
            framing: Framing,
            /// most
            /// bytes
            max_bytes as "max-bytes": Option<u64> = size().aliases(&["max"]).absent("no limit"),
            burst: Unless0<u16> = BURST,
            /// whether to mark
            ecn: Placed<bool> = switch().off_by("noecn").placed(),
            /// steps, of which each counts
            step: Every<usize> = number("steps", 0, 9).default("1").every(),
        }
    }

    const BURST: Declared<Unless0<u16>> =
        number("packets", 0, 9).absent_or_0("one").means("packets at once");

    fn shapes(words: &str) -> Result<Shapes, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        read("shapes", &words, &Device::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_record_is_the_table_and_the_reader() {
        let names: Vec<_> = Shapes::PARAMS.iter().map(|param| param.name).collect();
        assert_eq!(names, ["limit", "overhead", "max-bytes", "burst", "ecn", "step"]);
        assert_eq!(Shapes::PARAMS[2].meaning, "most bytes", "the doc comment");
        assert_eq!(Shapes::PARAMS[3].meaning, "packets at once", "the shared declaration's own");

        let few = shapes("limit 7").unwrap();
        assert_eq!((few.limit, few.framing.overhead, few.max_bytes), (7, 4, None));
        assert_eq!((few.burst, few.ecn), (Unless0(None), Placed { value: false, place: None }));
        assert_eq!(few.step, Every(Vec::new()), "what was written, without the default");

        let all = shapes("max 2kb step 3 limit 100 ecn step 4 noecn overhead 9 burst 5").unwrap();
        assert_eq!((all.limit, all.framing.overhead, all.max_bytes), (100, 9, Some(2_048)));
        assert_eq!(
            (all.burst, all.ecn),
            (Unless0(Some(5)), Placed { value: false, place: Some(5) })
        );
        assert_eq!(all.step, Every(vec![(1, 3), (4, 4)]));
        assert_eq!(shapes("limit 7 burst 0").unwrap().burst, Unless0(None));
    }

    #[test]
    fn an_error_names_the_owner_and_the_parameter() {
        let error = |words| shapes(words).map(|_| ()).unwrap_err();
        assert_eq!(error("ecn"), "shapes: `limit` is required (most packets)");
        assert_eq!(error("limit 101"), "shapes: `limit 101`: write a number from 1 to 100");
        assert_eq!(error("limit 1 max"), "shapes: `max` needs a value behind it");
        assert_eq!(error("limit 1 step 3 step x"), "shapes: `step x`: write a number from 0 to 9");
        assert_eq!(
            error("limit 1 overhed 3"),
            "shapes: unknown parameter `overhed`: did you mean `overhead`?"
        );
    }
}
