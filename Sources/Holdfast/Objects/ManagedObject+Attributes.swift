import HoldfastStore

extension ManagedObject {
  /// The value of the attribute in a slot, read and written as a Swift type.
  ///
  /// For accessors of typed subclasses, whose types and slots are compared with the model when the class is bound. Traps if the entity
  /// doesn't have the slot, or if `Value` can't hold the attribute's type.
  @inlinable public final subscript<Value: AttributeValue>(_ slot: SlotIndex) -> Value {
    @inline(__always) get {
      checkSlot(slot, Value.attributeTypes)
      return Value.read(self, slot)
    }
    set {
      checkSlot(slot, Value.attributeTypes)
      newValue.store(in: self, slot)
    }
  }

  /// Calls a closure with the UTF-8 bytes of the text in a slot, without creating a `String`.
  ///
  /// The bytes are valid until the closure returns, also if it changes, refreshes or saves the object. If the object has unsaved changes,
  /// they are a copy.
  ///
  /// - Returns: The closure's result. Its bytes are empty if the slot has no value, and read from the file if the value is in an external
  ///   file.
  @inlinable public final func withUTF8<Result>(_ slot: SlotIndex, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    checkSlot(slot, .inBytes)
    let row = row(for: slot), bytes = row.bytes(slot)
    if row.isExternal(slot) { return try bytesInFile(slot, row).withUnsafeBytes(body) }
    guard let owner = sealedRowOwner else { return try [UInt8](bytes).withUnsafeBytes(body) }
    defer { withExtendedLifetime(owner) {} }
    return try body(bytes)
  }

  /// What keeps the object's row in memory; nil if the row is the object's own, or an empty one.
  @usableFromInline final var sealedRowOwner: AnyObject? { flags.contains(.hasPrivateRow) ? nil : owner }

  // MARK: Writing

  /// Writes a number into a slot.
  @usableFromInline final func setCell(_ slot: SlotIndex, _ cell: UInt64) {
    checkSlot(slot, .inCells)
    if !flags.contains(.probe) { writableRow().set(slot, cell: cell) }
  }

  /// Writes nil into a slot.
  @usableFromInline final func setNull(_ slot: SlotIndex) {
    checkSlot(slot, AttributeTypeSet.inCells.union(.inBytes))
    if !flags.contains(.probe) { writableRow().setNull(slot) }
  }

  /// Writes bytes into a slot.
  @usableFromInline final func setBytes(_ slot: SlotIndex, _ bytes: UnsafeRawBufferPointer) {
    checkSlot(slot, .inBytes)
    if flags.contains(.probe) { return }
    var copy = writableRow()
    copy.set(slot, bytes: bytes, entity.layout, in: context.pool)
    row = copy.pointer
  }

  /// Writes text into a slot.
  final func setText(_ slot: SlotIndex, _ text: String) {
    // `withUTF8` needs a variable, and copying a long text to it retains the text.
    if text.utf8.withContiguousStorageIfAvailable({ setBytes(slot, UnsafeRawBufferPointer($0)) }) != nil { return }
    var text = text
    text.withUTF8 { setBytes(slot, UnsafeRawBufferPointer($0)) }
  }

  /// The object's own row, created by the first write.
  final func writableRow() -> PrivateRow {
    if flags.contains(.hasPrivateRow), let row {
      if !flags.contains(.listed) { noteWrite() }
      return PrivateRow(existing: row)
    }
    let committed = readRow
    // An object that was just awakened may already have one.
    if flags.contains(.hasPrivateRow) { return writableRow() }
    let copy = PrivateRow(copying: committed, entity.layout, room: 64, committed: committed, in: context.pool)
    row = copy.pointer
    flags.insert(.hasPrivateRow)
    noteWrite()
    return copy
  }

  /// Sets a slot to the value in another row of the entity.
  final func copy(_ slot: SlotIndex, of other: RowPointer) {
    var own = writableRow()
    own.copy(slot, of: other, entity.layout, in: context.pool)
    row = own.pointer
  }

  /// Values that an object sets while it is awakened aren't changes.
  private func noteWrite() {
    if !flags.contains(.awakening) { context.noteChange(self) }
  }

  /// Replaces the object's own row with a sealed one, or with none.
  final func dropPrivateRow(_ next: RowPointer?) {
    if flags.contains(.hasPrivateRow), let row {
      PrivateRow(existing: row).destroy(in: context.pool)
      flags.remove(.hasPrivateRow)
    }
    row = next
  }

  /// The row in the store; nil for a fault or a new object.
  final var committedRow: RowPointer? {
    guard let row else { return nil }
    return flags.contains(.hasPrivateRow) ? PrivateRow(existing: row).committed : row
  }

  /// Writes a value of the slot's type.
  final func set(_ slot: SlotIndex, _ value: StoreValue) {
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
