import HoldfastStore

extension Derivation.TextFunction {
  /// The text, changed without regard to any locale. Letter case is Swift's mapping, which is Unicode's; ``canonical`` is what
  /// comparisons with `[cd]` compare.
  func apply(_ text: String) -> String {
    switch self {
    case .uppercase: text.uppercased()
    case .lowercase: text.lowercased()
    case .canonical: String(decoding: TextFolding([.caseInsensitive, .diacriticInsensitive]).fold(text), as: UTF8.self)
    }
  }
}

extension DerivationPlan.Own {
  /// The value for a row.
  func value(_ row: RowPointer, date: Double) -> StoreValue {
    switch source {
    case .now: .date(date)
    case .copy(let slot): row.isPresent(slot) ? row.value(slot, type) : .null
    case .text(let function, let slot): row.isPresent(slot) ? .string(function.apply(row.string(slot))) : .null
    }
  }

  /// Whether the value of a changed row has to be worked out: what it comes from changed, somebody set it, or it is missing.
  func isDue(_ row: RowPointer, _ committed: RowPointer, _ kinds: [CellKind]) -> Bool {
    let from: Int
    switch source {
    case .now: return true
    case .copy(let slot), .text(_, let slot): from = slot
    }
    return row.differs(from: committed, from, kinds[from]) || row.differs(from: committed, slot, kinds[slot])
      || row.isPresent(from) && !row.isPresent(slot)
  }
}

extension DerivationPlan.Path {
  /// The value that the last object of the path gives.
  func value(_ row: RowPointer?) -> StoreValue {
    guard let row, row.isPresent(source.slot) else { return .null }
    guard let function else { return row.value(source.slot, source.type) }
    return .string(function.apply(row.string(source.slot)))
  }
}
