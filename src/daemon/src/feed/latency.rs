//! `Feed.Latency`: measured two-way latency of pairs of hosts.

use super::stream::empty_item;
use super::{FeedRegistries, FeedStream, ItemRefusal, Reason, convert};
use hintd_client::wire::v1;
use hintd_model::units::Micros;
use v1::latency_item::Item;

/// The longest round trip that is believed: a minute.
const RTT_MAX: Micros = Micros::from_secs(60);

/// Takes one item in.
///
/// # Errors
/// Why it is refused; the stream notes it for the next acknowledgement and goes on.
pub fn ingest(registries: &FeedRegistries, stream: &mut FeedStream, item: v1::LatencyItem) -> Result<(), ItemRefusal> {
    stream.take(registries, item.number, |stream| match item.item.ok_or_else(empty_item)? {
        Item::Hello(hello) => {
            stream.greet(hello);
            Ok(())
        }
        Item::Sample(sample) => {
            stream.greeted()?;
            let (from, to) =
                (convert::host("from_host", &sample.from_host)?, convert::host("to_host", &sample.to_host)?);
            if from == to {
                return Err(ItemRefusal::new(Reason::Malformed, format!("\"{from}\" is measured to itself")));
            }
            match Micros(sample.rtt_us) {
                Micros::ZERO => Err(ItemRefusal::new(Reason::Zero, format!("0 µs from \"{from}\" to \"{to}\""))),
                rtt if rtt > RTT_MAX => {
                    let [said, most] = [rtt, RTT_MAX].map(Micros::in_words);
                    let message = format!("{said} from \"{from}\" to \"{to}\": at most {most}");
                    Err(ItemRefusal::new(Reason::TooLarge, message))
                }
                rtt => registries.latency(&from, &to, rtt),
            }
        }
    })
}
