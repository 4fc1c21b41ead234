extension SaveRequest {
  /// Values of derived attributes that follow from other objects, of rows that the save does not change otherwise or whose value others
  /// may change at the same time: how many walks a dog has is changed by whoever saves a walk, and that is no conflict.
  ///
  /// Of each row only the marked slots mean something, and its key. The version does not: it is neither compared nor raised. A store
  /// applies these rows after everything else of the request, to what is there then; a row that is not there is left out.
  public struct DerivedRows: Sendable, Codable {
    /// The values, or what is to be added to them.
    public var rows: RowBatch
    /// For each row, which slots get the value of the row: bits and words as in ``UpdatedRows/changedSlots``.
    public var setSlots: [UInt64]
    /// For each row, to which slots the number of the row is added: whole numbers and decimals only. Where there is no number, none is
    /// made. No slot is marked in both.
    public var addedSlots: [UInt64]
    /// The words of one row.
    public var wordsPerRow: Int

    /// Makes derived rows.
    public init(rows: RowBatch, setSlots: [UInt64], addedSlots: [UInt64], wordsPerRow: Int) {
      self.rows = rows
      self.setSlots = setSlots
      self.addedSlots = addedSlots
      self.wordsPerRow = wordsPerRow
    }

    /// Whether a slot gets the value of a row.
    public func isSet(row: Int, slot: Int) -> Bool { setSlots[row * wordsPerRow + slot / 64] & 1 << UInt64(slot % 64) != 0 }

    /// Whether the number of a row is added to a slot.
    public func isAdded(row: Int, slot: Int) -> Bool { addedSlots[row * wordsPerRow + slot / 64] & 1 << UInt64(slot % 64) != 0 }

    /// The slots of a row that change, ascending.
    public func slots(row: Int) -> [Int] {
      rows.layout.columns.indices.filter { isSet(row: row, slot: $0) || isAdded(row: row, slot: $0) }
    }

    /// Whether all that a row says does not depend on what is there.
    public func isSetOnly(row: Int) -> Bool { addedSlots[row * wordsPerRow..<(row + 1) * wordsPerRow].allSatisfy { $0 == 0 } }

    /// The value that a slot has after the save.
    ///
    /// - Parameters:
    ///   - row: the place of the row in ``rows``.
    ///   - slot: the slot.
    ///   - stored: the value that is there.
    /// - Throws: ``StoreError`` with code ``StoreError/Code/unstorableValue`` when a sum is beyond what the attribute can hold.
    public func value(row: Int, slot: Int, after stored: StoreValue) throws -> StoreValue {
      guard case .attribute(let type) = rows.layout.columns[slot] else { return stored }
      let given = rows.pointer(row).value(slot, rows.layout.columns[slot], idPrefix: nil)
      if isSet(row: row, slot: slot) { return given }
      guard isAdded(row: row, slot: slot), stored != .null, given != .null else { return stored }
      if let sum = DerivedRows.sum(stored, given, type) { return sum }
      throw StoreError(
        .unstorableValue, operation: "save",
        reason: "A number derived from others, in slot \(slot) of the object with key \(rows.pointer(row).key), would be beyond what its "
          + "attribute can hold.")
    }

    private static func sum(_ a: StoreValue, _ b: StoreValue, _ type: AttributeType) -> StoreValue? {
      if case .decimal(let a) = a, case .decimal(let b) = b { return .decimal(a + b) }
      guard let range = type.integerRange, let a = a.integer, let b = b.integer else { return nil }
      let (sum, overflow) = a.addingReportingOverflow(b)
      return overflow || !range.contains(sum) ? nil : StoreValue.int64(sum).converted(to: type)
    }

    /// Appends the row that a stored one becomes, under its version.
    ///
    /// - Parameters:
    ///   - index: which of ``rows``.
    ///   - stored: the row of that key, with the layout of ``rows``.
    ///   - builder: a builder of that layout.
    /// - Throws: as ``value(row:slot:after:)``; nothing was appended then.
    public func append(_ index: Int, after stored: RowPointer, to builder: RowBatchBuilder) throws {
      builder.beginRow(key: stored.key, version: stored.version)
      for slot in builder.layout.columns.indices {
        if isSet(row: index, slot: slot) {
          builder.append(slot, of: rows.pointer(index))
        } else if isAdded(row: index, slot: slot) {
          let column = builder.layout.columns[slot]
          do {
            let value = try value(row: index, slot: slot, after: stored.value(slot, column, idPrefix: nil))
            if !builder.appendValue(value, column) { builder.appendNull() }
          } catch {
            builder.cancelRow()
            throw error
          }
        } else {
          builder.append(slot, of: stored)
        }
      }
      builder.endRow()
    }

    private enum CodingKeys: String, CodingKey { case rows, setSlots, addedSlots, wordsPerRow }

    /// Decodes rows from values.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      rows = try container.decode(CodedRows.self, forKey: .rows).batch()
      setSlots = try container.decode([UInt64].self, forKey: .setSlots)
      addedSlots = try container.decode([UInt64].self, forKey: .addedSlots)
      wordsPerRow = try container.decode(Int.self, forKey: .wordsPerRow)
    }

    /// Encodes the rows as values.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(CodedRows(rows), forKey: .rows)
      try container.encode(setSlots, forKey: .setSlots)
      try container.encode(addedSlots, forKey: .addedSlots)
      try container.encode(wordsPerRow, forKey: .wordsPerRow)
    }
  }
}
