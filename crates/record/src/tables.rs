//! The tables of a record while it is being written.

use std::path::Path;

use weir_scenario::{
    EmulatorRow, FlowRow, LatencyRow, MethodRow, QueueRow, ShaperRow, TABLES, TcpRow,
    ThroughputRow, TransferRow, UdpRow,
};

use crate::table::Table;

/// All tables of a record.
#[derive(Debug)]
pub(crate) struct Tables {
    pub flows: Table,
    pub throughput: Table,
    pub latency: Table,
    pub tcp: Table,
    pub queue: Table,
    pub emulator: Table,
    pub shaper: Table,
    pub method: Table,
    pub udp: Table,
    pub transfers: Table,
}

impl Tables {
    pub fn new(record: &Path) -> Self {
        Self {
            flows: Table::of::<FlowRow>(record),
            throughput: Table::of::<ThroughputRow>(record),
            latency: Table::of::<LatencyRow>(record),
            tcp: Table::of::<TcpRow>(record),
            queue: Table::of::<QueueRow<'_>>(record),
            emulator: Table::of::<EmulatorRow>(record),
            shaper: Table::of::<ShaperRow<'_>>(record),
            method: Table::of::<MethodRow<'_>>(record),
            udp: Table::of::<UdpRow>(record),
            transfers: Table::of::<TransferRow>(record),
        }
    }

    pub fn each(&mut self) -> [&mut Table; TABLES.len()] {
        let Self {
            flows,
            throughput,
            latency,
            tcp,
            queue,
            emulator,
            shaper,
            method,
            udp,
            transfers,
        } = self;
        [flows, throughput, latency, tcp, queue, emulator, shaper, method, udp, transfers]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_scenario::TABLES;

    use super::Tables;

    #[test]
    fn every_table_is_written_under_its_name() {
        let mut tables = Tables::new(Path::new("record"));
        let written = tables.each().map(|table| table.name().to_owned());
        assert_eq!(written, TABLES.map(|table| table.name));
    }
}
