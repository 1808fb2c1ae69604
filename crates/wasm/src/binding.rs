//! What JavaScript sees: names of recordings, and a run that is driven in steps.

use js_sys::{Float64Array, Uint32Array};
use wasm_bindgen::prelude::wasm_bindgen;
use weir_core::Time;
use weir_sim::{Outcome, Simulation};
use weir_tcp::ALGORITHMS;

use crate::columns::{ColumnValues, Columns, FilledTable};
use crate::prepare::{Prepared, Recordings, recordings_of};
use crate::summary::summarise;

/// The names of the recordings that the scenario in `text` needs. Throws a sentence if it is no scenario.
#[wasm_bindgen]
pub fn recordings(text: &str) -> Result<Vec<String>, String> {
    recordings_of(text)
}

/// The names of the congestion controls that the simulated TCP has.
#[wasm_bindgen]
pub fn congestion_controls() -> Vec<String> {
    ALGORITHMS.iter().map(|known| known.name.to_owned()).collect()
}

/// One run of a scenario, driven in steps by a worker that listens between them.
#[wasm_bindgen]
pub struct Run {
    prepared: Prepared,
    columns: Columns,
    at_work: Option<Simulation>,
    outcome: Outcome,
}

#[wasm_bindgen]
impl Run {
    /// Reads the scenario in `text` and sets it up; recording number n of `names` has text number n of `texts`.
    /// Throws all that is wrong with it, in a sentence.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, names: Vec<String>, texts: Vec<String>) -> Result<Self, String> {
        let recordings = Recordings(names.into_iter().zip(texts).collect());
        let prepared = Prepared::new(text, &recordings)?;
        let simulation = prepared.simulation(&recordings)?;
        Ok(Self {
            prepared,
            columns: Columns::default(),
            at_work: Some(simulation),
            outcome: Outcome::default(),
        })
    }

    /// The resolved scenario, as the manifest of a record has it: JSON.
    pub fn scenario(&self) -> String {
        self.prepared.scenario.to_json()
    }

    /// The queue spec as the text has it.
    pub fn queue(&self) -> String {
        self.prepared.queue.clone()
    }

    /// How many assertions the text has, none of which is judged here.
    pub fn assertions(&self) -> usize {
        self.prepared.assertions
    }

    /// Simulates until `until_s` seconds of simulated time, or to the end: whether there is more.
    pub fn advance(&mut self, until_s: f64) -> bool {
        let Some(simulation) = &mut self.at_work else { return false };
        let until = Time::from_nanos((until_s * 1e9) as u64);
        let _ = simulation.advance(until, &mut self.columns);
        until.as_nanos() < self.prepared.scenario.duration_ns
    }

    /// Ends the run where it is, and takes the rows that come last: whether it had come to its end.
    pub fn finish(&mut self) -> bool {
        if let Some(simulation) = self.at_work.take() {
            self.outcome = simulation.finish(&mut self.columns);
        }
        self.outcome.complete
    }

    /// Simulated time that was reached, in seconds.
    pub fn reached_s(&self) -> f64 {
        self.outcome.reached.as_nanos() as f64 / 1e9
    }

    /// Packets that left the queues of all hops.
    pub fn packets(&self) -> f64 {
        self.outcome.packets as f64
    }

    /// Events that were handled.
    pub fn events(&self) -> f64 {
        self.outcome.events as f64
    }

    /// The figures of the run, as JSON: the type `Summary`.
    pub fn summary(&self) -> String {
        let reached_ns = self.outcome.reached.as_nanos();
        let found = summarise(&self.prepared.scenario, &self.columns, reached_ns);
        serde_json::to_string(&found).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The names of all tables of the record.
    pub fn tables(&self) -> Vec<String> {
        self.columns.tables().iter().map(|table| table.name.to_owned()).collect()
    }

    /// The names of a table's columns; none of a table that the record does not have.
    pub fn names(&self, table: &str) -> Vec<String> {
        let columns = self.columns.table(table).map_or(&[][..], |table| &table.columns);
        columns.iter().map(|column| column.name.clone()).collect()
    }

    /// How many rows a table has.
    pub fn rows(&self, table: &str) -> usize {
        self.columns.table(table).map_or(0, |table| table.rows)
    }

    /// The numbers of a column, null as NaN. Undefined of a column of texts, and of one that the table does not have.
    pub fn numbers(&self, table: &str, column: &str) -> Option<Float64Array> {
        match self.values(table, column)? {
            ColumnValues::Numbers(numbers) => Some(Float64Array::from(&numbers[..])),
            ColumnValues::Texts(_) => None,
        }
    }

    /// Of each row of a column of texts the place of its text in `words`. Undefined of a column of numbers.
    pub fn codes(&self, table: &str, column: &str) -> Option<Uint32Array> {
        match self.values(table, column)? {
            ColumnValues::Numbers(_) => None,
            ColumnValues::Texts(texts) => Some(Uint32Array::from(&texts.codes[..])),
        }
    }

    /// The different texts of a column of texts; none of a column of numbers.
    pub fn words(&self, table: &str, column: &str) -> Vec<String> {
        match self.values(table, column) {
            Some(ColumnValues::Texts(texts)) => texts.words.clone(),
            Some(ColumnValues::Numbers(_)) | None => Vec::new(),
        }
    }
}

impl Run {
    fn values(&self, table: &str, column: &str) -> Option<&ColumnValues> {
        self.columns.table(table).and_then(|table: &FilledTable| table.column(column))
    }
}
