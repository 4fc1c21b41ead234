extension SaveRequest {
  /// Values of derived attributes that depend on other objects.
  ///
  /// A request lists such values separately if the save doesn't change their row otherwise, or if concurrent saves may change them too. For
  /// example, each save of a walk changes the walk count of its dog without a conflict.
  ///
  /// Only the key and the marked slots of each row are used. The version is neither compared nor raised. A store applies these rows after
  /// everything else in the request, to the values stored at that point. Missing rows are skipped.
  public struct DerivedRows: Sendable, Codable {
    /// Rows that contain the values to set or to add.
    public var rows: RowBatch
    /// The slots to set, as bits per row in the format of ``UpdatedRows/changedSlots``.
    public var setSlots: [UInt64]
    /// The slots to add to, in the same format. They contain whole numbers or decimals.
    ///
    /// If the stored value is nil, it stays nil. No slot is marked in both lists.
    public var addedSlots: [UInt64]
    /// The number of words per row in ``setSlots`` and ``addedSlots``.
    public var wordsPerRow: Int

    /// Creates derived rows.
    public init(rows: RowBatch, setSlots: [UInt64], addedSlots: [UInt64], wordsPerRow: Int) {
      self.rows = rows
      self.setSlots = setSlots
      self.addedSlots = addedSlots
      self.wordsPerRow = wordsPerRow
    }

    /// Whether a slot is set to the row's value.
    public func isSet(row: Int, slot: SlotIndex) -> Bool { setSlots[row * wordsPerRow + slot.word] & slot.bit != 0 }

    /// Whether the row's value is added to a slot.
    public func isAdded(row: Int, slot: SlotIndex) -> Bool { addedSlots[row * wordsPerRow + slot.word] & slot.bit != 0 }

    /// The slots that a row changes, ascending.
    public func slots(row: Int) -> [SlotIndex] {
      rows.layout.slots.filter { isSet(row: row, slot: $0) || isAdded(row: row, slot: $0) }
    }

    /// Whether a row only sets values, independently of the stored ones.
    public func isSetOnly(row: Int) -> Bool { addedSlots[row * wordsPerRow..<(row + 1) * wordsPerRow].allSatisfy { $0 == 0 } }

    /// The value of a slot after the save.
    ///
    /// - Parameters:
    ///   - row: The index in ``rows``.
    ///   - slot: The slot.
    ///   - stored: The stored value.
    /// - Throws: ``StoreError`` with code ``StoreError/Code/unstorableValue`` if a sum doesn't fit the attribute.
    public func value(row: Int, slot: SlotIndex, after stored: StoreValue) throws -> StoreValue {
      guard case .attribute(let type) = rows.layout.columns[slot] else { return stored }
      let given = rows.pointer(row).value(slot, rows.layout.columns[slot])
      if isSet(row: row, slot: slot) { return given }
      guard isAdded(row: row, slot: slot), stored != .null, given != .null else { return stored }
      if let sum = DerivedRows.sum(stored, given, type) { return sum }
      throw StoreError(
        .unstorableValue, operation: "save",
        reason: "The derived number in slot \(slot) of the object with key \(rows.pointer(row).key) doesn't fit the type of its "
          + "attribute. Give the attribute a larger type.")
    }

    private static func sum(_ a: StoreValue, _ b: StoreValue, _ type: AttributeType) -> StoreValue? {
      if case .decimal(let a) = a, case .decimal(let b) = b { return .decimal(a + b) }
      guard let range = type.integerRange, let a = a.integer, let b = b.integer else { return nil }
      let (sum, overflow) = a.addingReportingOverflow(b)
      return overflow || !range.contains(sum) ? nil : StoreValue.int64(sum).converted(to: type)
    }

    /// Appends a stored row with the derived values applied. Its version stays the same.
    ///
    /// - Parameters:
    ///   - index: The index in ``rows``.
    ///   - stored: The stored row with the same key, in the layout of ``rows``.
    ///   - builder: A builder with that layout.
    /// - Throws: The errors of ``value(row:slot:after:)``; nothing is appended then.
    public func append(_ index: Int, after stored: RowPointer, to builder: RowBatchBuilder) throws {
      builder.beginRow(key: stored.key, version: stored.version)
      for slot in builder.layout.slots {
        if isSet(row: index, slot: slot) {
          builder.append(slot, of: rows.pointer(index))
        } else if isAdded(row: index, slot: slot) {
          let column = builder.layout.columns[slot]
          do {
            let value = try value(row: index, slot: slot, after: stored.value(slot, column))
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

    /// Decodes the rows from values.
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
