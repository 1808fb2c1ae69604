//! Numbers of loads. In the record they follow the scenario; the server is asked for what starts first, by numbers that
//! only go up.

use weir_speedtest::protocol::weir::{FlowSample, ServerMessage};

use crate::ClientError;
use crate::flow_table::unknown;

/// Which load of the record has which number at the server.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Numbers in the record, by the number at the server.
    asked: Vec<u32>,
}

impl Numbers {
    /// The server is asked for load `number` of the record: the number that it knows it by.
    pub fn ask(&mut self, number: u32) -> u32 {
        self.asked.push(number);
        self.asked.len() as u32 - 1
    }

    /// The number by which the server knows load `number` of the record, once it was asked for it.
    pub fn at_server(&self, number: u32) -> Option<u32> {
        self.asked.iter().position(|&one| one == number).map(|place| place as u32)
    }

    /// What the server says, with the record's numbers.
    ///
    /// # Errors
    /// If it speaks of a load that it was not asked for.
    pub fn in_record(&self, message: ServerMessage) -> Result<ServerMessage, ClientError> {
        let sample = |one: FlowSample| Ok(FlowSample { flow: self.of_server(one.flow)?, ..one });
        Ok(match message {
            ServerMessage::Opened { flow, ticket } => {
                ServerMessage::Opened { flow: self.of_server(flow)?, ticket }
            }
            ServerMessage::Started { flow, t_ns, congestion } => {
                ServerMessage::Started { flow: self.of_server(flow)?, t_ns, congestion }
            }
            ServerMessage::Samples { t_ns, flows } => {
                let flows = flows.into_iter().map(sample).collect::<Result<_, ClientError>>()?;
                ServerMessage::Samples { t_ns, flows }
            }
            ServerMessage::Done { last, t_ns, reason } => {
                ServerMessage::Done { last: sample(last)?, t_ns, reason }
            }
            ServerMessage::Error { flow: Some(flow), reason } => {
                ServerMessage::Error { flow: Some(self.of_server(flow)?), reason }
            }
            other => other,
        })
    }

    fn of_server(&self, number: u32) -> Result<u32, ClientError> {
        self.asked.get(number as usize).copied().ok_or_else(|| unknown(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_numbered_in_the_order_in_which_they_are_asked_for() {
        let mut numbers = Numbers::default();
        assert_eq!([3, 0, 2].map(|number| numbers.ask(number)), [0, 1, 2]);
        assert_eq!(
            [0, 1, 2, 3].map(|number| numbers.at_server(number)),
            [Some(1), None, Some(2), Some(0)]
        );
        let said = |flow| ServerMessage::Error { flow: Some(flow), reason: "no".to_owned() };
        assert_eq!(numbers.in_record(said(2)).unwrap(), said(2));
        assert_eq!(numbers.in_record(said(0)).unwrap(), said(3));
        assert!(numbers.in_record(said(3)).is_err());
    }
}
