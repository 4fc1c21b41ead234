extension ManagedObject {
  /// The value of the attribute in a slot, read and written as a Swift type.
  ///
  /// For the accessors of typed subclasses, whose types and slots are compared with the model when the class is bound. A slot that the
  /// entity does not have, or whose attribute is of a type that `Value` does not hold, traps with a sentence.
  @inlinable public final subscript<Value: AttributeValue>(_ slot: Int) -> Value {
    @inline(__always) get {
      checkSlot(slot, Value.attributeTypes)
      return Value.read(self, slot)
    }
    set {
      checkSlot(slot, Value.attributeTypes)
      newValue.store(in: self, slot)
    }
  }

  /// The text in a slot as UTF-8 where it lies, for as long as the closure runs: no `String` is made.
  ///
  /// - Returns: what the closure returns; it gets empty bytes when there is no value.
  @inlinable public final func withUTF8<Result>(_ slot: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    checkSlot(slot, .inBytes)
    return try body(readRow.bytes(slot))
  }

  // MARK: Writing

  /// Writes a number into a slot.
  @usableFromInline final func setCell(_ slot: Int, _ cell: UInt64) {
    checkSlot(slot, .inCells)
    if !flags.contains(.probe) { writableRow().set(slot, cell: cell) }
  }

  /// Writes nil into a slot.
  @usableFromInline final func setNull(_ slot: Int) {
    checkSlot(slot, AttributeTypeSet.inCells.union(.inBytes))
    if !flags.contains(.probe) { writableRow().setNull(slot) }
  }

  /// Writes bytes into a slot.
  @usableFromInline final func setBytes(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    checkSlot(slot, .inBytes)
    if flags.contains(.probe) { return }
    var copy = writableRow()
    copy.set(slot, bytes: bytes, entity.layout)
    row = UnsafeRawPointer(copy.row)
  }

  /// The object's own row, made by the first write.
  final func writableRow() -> PrivateRow {
    if flags.contains(.hasPrivateRow), let row {
      if !flags.contains(.listed) { noteWrite() }
      return PrivateRow(existing: row)
    }
    let committed = readRow
    // An object that was just awakened may have one.
    if flags.contains(.hasPrivateRow) { return writableRow() }
    let copy = PrivateRow(copying: committed, entity.layout, room: 64, committed: committed.base)
    row = UnsafeRawPointer(copy.row)
    flags.insert(.hasPrivateRow)
    noteWrite()
    return copy
  }

  /// What an object sets of itself while it is awakened is no change.
  private func noteWrite() {
    if !flags.contains(.awakening) { managedObjectContext.noteChange(self) }
  }

  /// Gives the object's own row up for a sealed one, or for none.
  final func dropPrivateRow(_ next: UnsafeRawPointer?) {
    if flags.contains(.hasPrivateRow), let row {
      PrivateRow(existing: row).destroy()
      flags.remove(.hasPrivateRow)
    }
    row = next
  }

  /// The row as the store has it; nil for a fault and for a new object.
  final var committedRow: RowPointer? {
    guard let row else { return nil }
    return flags.contains(.hasPrivateRow) ? PrivateRow(existing: row).committed : RowPointer(row)
  }

  /// Writes a value that is known to fit the slot.
  final func set(_ slot: Int, _ value: StoreValue) {
    switch value {
    case .null: setNull(slot)
    case .bool(let value): value.store(in: self, slot)
    case .int16(let value): value.store(in: self, slot)
    case .int32(let value): value.store(in: self, slot)
    case .int64(let value): value.store(in: self, slot)
    case .float(let value): value.store(in: self, slot)
    case .double(let value), .date(let value): value.store(in: self, slot)
    case .decimal(let value): value.store(in: self, slot)
    case .string(let value), .uri(let value): value.store(in: self, slot)
    case .uuid(let value): value.store(in: self, slot)
    case .data(let value): value.store(in: self, slot)
    case .externalData: preconditionFailure("The name of a file was set; only stores give names.")
    case .objectID(let value): value.store(in: self, slot)
    }
  }
}
