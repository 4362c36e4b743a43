/// The records themselves. Sizes count the fields' bytes as Nexmark does: `extra` fills a record up to its kind's average.
extension NexmarkGenerator {
    /// Appends the record of an event, without a newline.
    func write(_ event: Int, to writer: RecordWriter) -> Kind {
        var random = SeededRandom(seed: seed, number: event)
        writer.reserve(Self.recordBytesMax)
        let kind = kind(of: event)
        switch kind {
        case .person: writePerson(event, &random, writer)
        case .auction: writeAuction(event, &random, writer)
        case .bid: writeBid(event, &random, writer)
        }
        return kind
    }

    private func writePerson(_ event: Int, _ random: inout SeededRandom, _ writer: RecordWriter) {
        writer.put("{\"id\":")
        writer.put(Self.lastPerson(event) + Self.firstID)
        writer.put(",\"name\":\"")
        let begin = writer.count
        writer.put(NexmarkStrings.firstNames[random.below(NexmarkStrings.firstNames.count)])
        writer.put(byte: UInt8(ascii: " "))
        writer.put(NexmarkStrings.lastNames[random.below(NexmarkStrings.lastNames.count)])
        var size = 8 + writer.count - begin
        writer.put("\",\"email_address\":\"")
        let user = NexmarkStrings.word(&random, most: 7, special: UInt8(ascii: " "))
        let host = NexmarkStrings.word(&random, most: 5, special: UInt8(ascii: " "))
        writer.put(user)
        writer.put(byte: UInt8(ascii: "@"))
        writer.put(host)
        writer.put(".com")
        size += user.count + host.count + 5
        writer.put("\",\"credit_card\":\"")
        for group in 0..<4 {
            if group > 0 { writer.put(byte: UInt8(ascii: " ")) }
            writer.putDigits(random.below(10_000), 4)
        }
        size += 19
        writer.put("\",\"city\":\"")
        let city = NexmarkStrings.cities[random.below(NexmarkStrings.cities.count)]
        writer.put(city)
        writer.put("\",\"state\":\"")
        writer.put(NexmarkStrings.states[random.below(NexmarkStrings.states.count)])
        size += city.count + 2
        writer.put("\",\"date_time\":\"")
        writer.putTime(time(of: event), fractionDigits: 3)
        finish(&random, writer, size: size, average: 200)
    }

    private func writeAuction(_ event: Int, _ random: inout SeededRandom, _ writer: RecordWriter) {
        let time = time(of: event)
        let isHot = random.chance(3, in: 4)
        let seller = isHot ? Self.lastPerson(event) / Self.hotSpan * Self.hotSpan : Self.somePerson(event, &random)
        let initial = Self.price(&random)
        writer.put("{\"id\":")
        writer.put(Self.lastAuction(event) + Self.firstID)
        writer.put(",\"item_name\":\"")
        let name = NexmarkStrings.word(&random, most: 20, special: UInt8(ascii: " "))
        writer.put(name)
        writer.put("\",\"description\":\"")
        let description = NexmarkStrings.word(&random, most: 100, special: UInt8(ascii: " "))
        writer.put(description)
        writer.put("\",\"initial_bid\":")
        writer.put(initial)
        writer.put(",\"reserve\":")
        writer.put(initial + Self.price(&random))
        writer.put(",\"date_time\":\"")
        writer.putTime(time, fractionDigits: 3)
        writer.put("\",\"expires\":\"")
        // Auctions stay open for about as long as it takes until as many new ones as are open have begun.
        let horizonMillis = Int(Double(Self.auctionsInFlight * Self.totalProportion / Self.auctionProportion) * 1000 / rate)
        writer.putTime(time + Int64(1 + random.below(max(horizonMillis * 2, 1))) * 1000, fractionDigits: 3)
        writer.put("\",\"seller\":")
        writer.put(seller + Self.firstID)
        writer.put(",\"category\":")
        writer.put(Self.firstCategory + random.below(Self.categories))
        finishAfterNumber(&random, writer, size: 8 + name.count + description.count + 40, average: 500)
    }

    private func writeBid(_ event: Int, _ random: inout SeededRandom, _ writer: RecordWriter) {
        let isHotAuction = random.chance(1, in: 2)
        let auction = isHotAuction ? max(Self.lastAuction(event), 0) / Self.hotSpan * Self.hotSpan : Self.someAuction(event, &random)
        let isHotBidder = random.chance(3, in: 4)
        let bidder = isHotBidder ? Self.lastPerson(event) / Self.hotSpan * Self.hotSpan + 1 : Self.somePerson(event, &random)
        writer.put("{\"auction\":")
        writer.put(auction + Self.firstID)
        writer.put(",\"bidder\":")
        writer.put(bidder + Self.firstID)
        writer.put(",\"price\":")
        writer.put(Self.price(&random))
        writer.put(",\"channel\":\"")
        if random.chance(1, in: 2) {
            let channel = random.below(NexmarkStrings.hotChannels.count)
            writer.put(NexmarkStrings.hotChannels[channel])
            writer.put("\",\"url\":\"")
            writer.put(strings.hotURLs[channel])
        } else {
            let channel = random.below(NexmarkStrings.channels)
            writer.put("channel-")
            writer.put(channel)
            writer.put("\",\"url\":\"")
            writer.put(strings.channelURLs[channel])
        }
        writer.put("\",\"date_time\":\"")
        writer.putTime(time(of: event), fractionDigits: 3)
        finish(&random, writer, size: 32, average: 100)
    }

    /// The rest of a record whose last field is an open string.
    private func finish(_ random: inout SeededRandom, _ writer: RecordWriter, size: Int, average: Int) {
        writer.put(byte: UInt8(ascii: "\""))
        finishAfterNumber(&random, writer, size: size, average: average)
    }

    private func finishAfterNumber(_ random: inout SeededRandom, _ writer: RecordWriter, size: Int, average: Int) {
        writer.put(",\"extra\":\"")
        if size <= average {
            let wanted = average - size
            let spread = wanted / 5
            let length = wanted - spread + (spread > 0 ? random.below(2 * spread) : 0)
            let start = random.below(strings.letters.count - length)
            strings.letters.withUnsafeBufferPointer { writer.put($0.baseAddress.unsafelyUnwrapped + start, length) }
        }
        writer.put("\"}")
    }
}
