//! How a table of the record is declared: a struct with one field a column, or a few columns.
//!
//! A field's doc comment is what the column means, for Rust, for Python and for `docs/record.md`. Its name, with `_ns` behind
//! it if it is a [`Time`] or [`Duration`], is the column's name; its type is the column's type, and an `Option` may be null.

use weir_core::{Duration, Time};

/// A table of the record.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the table, which is that of its folder in a record.
    pub name: &'static str,
    /// Meaning of a row.
    pub meaning: &'static str,
    /// What of a run there is a row of.
    pub of_each: OfEach,
    /// Columns of the table in order.
    pub columns: fn() -> Vec<Column>,
}

/// What of a run there is a row of, by which rows belong to a span of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfEach {
    /// Of the whole run: the table has no `t_ns`.
    Run,
    /// Of a moment, which is `t_ns`.
    Moment,
    /// Of an interval, whose end is `t_ns`.
    Interval,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, which ends in the unit of its numbers.
    pub name: String,
    /// Type of its values.
    pub kind: ColumnType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Meaning, in a sentence.
    pub meaning: &'static str,
    /// The format of the record since which it is always there.
    pub since: u32,
    /// For one of several columns, one for each reason of drops or marks: what their names begin with.
    pub family: Option<&'static str>,
}

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Float,
    /// Text.
    Text,
}

/// A row of a table, whose struct declares the table.
pub trait Row {
    /// The table.
    const TABLE: Table;

    /// Gives each column's value in the order of the columns.
    fn values(&self, to: &mut impl Values);
}

/// Takes the values of a row, one column after the other.
pub trait Values {
    /// A whole number, as the bits of 64: those of one that may be below 0 are of two's complement.
    fn integer(&mut self, value: u64);
    /// The same of a column that may be null.
    fn integer_or_null(&mut self, value: Option<u64>);
    /// A number.
    fn float(&mut self, value: f64);
    /// Text.
    fn text(&mut self, value: &str);
    /// Text of a column that may be null.
    fn text_or_null(&mut self, value: Option<&str>);
}

/// A field, as the declaration of a row has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    pub field: &'static str,
    pub meaning: &'static str,
    pub since: u32,
}

/// A type that fields of rows can have.
pub(crate) trait Field {
    /// The columns of such a field.
    fn columns(declared: Declared, columns: &mut Vec<Column>);
    /// Gives their values in that order.
    fn values(&self, to: &mut impl Values);
}

/// A whole number, whose column may be null where the field is an `Option`.
pub(crate) trait Integer: Copy {
    /// Ending of the column's name, behind the field's.
    const UNIT: &'static str;
    fn integer(self) -> u64;
}

impl Declared {
    pub(crate) fn column(self, unit: &str, kind: ColumnType, nullable: bool) -> Column {
        let Self { field, meaning, since } = self;
        let name = format!("{field}{unit}");
        Column { name, kind, nullable, meaning: meaning.trim(), since, family: None }
    }
}

impl Integer for Time {
    const UNIT: &'static str = "_ns";
    fn integer(self) -> u64 {
        self.as_nanos()
    }
}

impl Integer for Duration {
    const UNIT: &'static str = "_ns";
    fn integer(self) -> u64 {
        self.as_nanos()
    }
}

impl Integer for u32 {
    const UNIT: &'static str = "";
    fn integer(self) -> u64 {
        self.into()
    }
}

impl Integer for i64 {
    const UNIT: &'static str = "";
    /// Its bits, as a column keeps them.
    fn integer(self) -> u64 {
        self.cast_unsigned()
    }
}

impl Integer for u64 {
    const UNIT: &'static str = "";
    fn integer(self) -> u64 {
        self
    }
}

impl<T: Integer> Field for T {
    fn columns(declared: Declared, columns: &mut Vec<Column>) {
        columns.push(declared.column(T::UNIT, ColumnType::Integer, false));
    }
    fn values(&self, to: &mut impl Values) {
        to.integer((*self).integer());
    }
}

impl<T: Integer> Field for Option<T> {
    fn columns(declared: Declared, columns: &mut Vec<Column>) {
        columns.push(declared.column(T::UNIT, ColumnType::Integer, true));
    }
    fn values(&self, to: &mut impl Values) {
        to.integer_or_null(self.map(T::integer));
    }
}

impl Field for f64 {
    fn columns(declared: Declared, columns: &mut Vec<Column>) {
        columns.push(declared.column("", ColumnType::Float, false));
    }
    fn values(&self, to: &mut impl Values) {
        to.float(*self);
    }
}

impl Field for &str {
    fn columns(declared: Declared, columns: &mut Vec<Column>) {
        columns.push(declared.column("", ColumnType::Text, false));
    }
    fn values(&self, to: &mut impl Values) {
        to.text(self);
    }
}

impl Field for Option<&str> {
    fn columns(declared: Declared, columns: &mut Vec<Column>) {
        columns.push(declared.column("", ColumnType::Text, true));
    }
    fn values(&self, to: &mut impl Values) {
        to.text_or_null(*self);
    }
}

/// Declares a table by its row, and what of a run there is a row of. A column that came after the first format of the record has `#[since(N)]`, the format
/// that it came with: older records are read without it.
macro_rules! table {
    (
        $name:literal, $row_meaning:literal, of each $of_each:ident:
        $(#[$attribute:meta])+
        pub struct $row:ident $(<$life:lifetime>)? {
            $( $(#[doc = $meaning:literal])+ $(#[since($since:literal)])? pub $field:ident: $type:ty, )+
        }
    ) => {
        #[doc = concat!("A row of the table `", $name, "`: ", $row_meaning, ".")]
        $(#[$attribute])+
        pub struct $row $(<$life>)? {
            $( $(#[doc = $meaning])+ pub $field: $type, )+
        }

        impl $(<$life>)? $crate::table::Row for $row $(<$life>)? {
            const TABLE: $crate::table::Table = $crate::table::Table {
                name: $name,
                meaning: $row_meaning,
                of_each: $crate::table::OfEach::$of_each,
                columns: || {
                    let mut columns = Vec::new();
                    $( <$type as $crate::table::Field>::columns($crate::table::Declared {
                        field: stringify!($field),
                        meaning: concat!($($meaning),+),
                        since: [$($since,)? 1][0],
                    }, &mut columns); )+
                    columns
                },
            };

            fn values(&self, to: &mut impl $crate::table::Values) {
                $( $crate::table::Field::values(&self.$field, to); )+
            }
        }
    };
}

/// Declares columns that are null together or not at all: a struct for fields of the type `Option` of it. The names of the
/// columns begin with `$prefix`.
macro_rules! columns {
    (
        $prefix:literal, since $since:literal:
        $(#[$attribute:meta])+
        pub struct $group:ident {
            $( $(#[doc = $meaning:literal])+ pub $field:ident: $type:ty, )+
        }
    ) => {
        $(#[$attribute])+
        pub struct $group {
            $( $(#[doc = $meaning])+ pub $field: $type, )+
        }

        impl $crate::table::Field for Option<$group> {
            fn columns(_: $crate::table::Declared, columns: &mut Vec<$crate::table::Column>) {
                $( <Option<$type> as $crate::table::Field>::columns($crate::table::Declared {
                    field: concat!($prefix, stringify!($field)),
                    meaning: concat!($($meaning),+),
                    since: $since,
                }, columns); )+
            }

            fn values(&self, to: &mut impl $crate::table::Values) {
                $( $crate::table::Field::values(&self.map(|group| group.$field), to); )+
            }
        }
    };
}

/// Declares columns of which there is one for each reason of an enum, in the order of its `ALL`.
macro_rules! by_reason {
    ($(#[$attribute:meta])+ pub struct $counts:ident of $reason:ty) => {
        $(#[$attribute])+
        pub struct $counts(pub [u64; <$reason>::ALL.len()]);

        impl $crate::table::Field for $counts {
            fn columns(
                declared: $crate::table::Declared,
                columns: &mut Vec<$crate::table::Column>,
            ) {
                columns.extend(<$reason>::ALL.map(|reason| $crate::table::Column {
                    family: Some(declared.field),
                    ..declared.column(
                        &format!("_{}", reason.name()),
                        $crate::table::ColumnType::Integer,
                        false,
                    )
                }));
            }

            fn values(&self, to: &mut impl $crate::table::Values) {
                for count in self.0 {
                    to.integer(count);
                }
            }
        }
    };
}

pub(crate) use {by_reason, columns, table};
