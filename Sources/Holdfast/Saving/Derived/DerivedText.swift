import HoldfastStore

extension Derivation.TextFunction {
  /// Transforms a text, independently of the locale.
  ///
  /// Letter case uses Swift's mapping, which is Unicode's. ``canonical`` returns the text that `[cd]` comparisons use.
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

  /// Whether the derived value in a changed row must be recomputed: the source changed, or the derived value was set or is missing.
  func isDue(_ row: RowPointer, _ committed: RowPointer, _ kinds: [CellKind]) -> Bool {
    let from: SlotIndex
    switch source {
    case .now: return true
    case .copy(let slot), .text(_, let slot): from = slot
    }
    return row.differs(from: committed, from, kinds[from]) || row.differs(from: committed, slot, kinds[slot])
      || row.isPresent(from) && !row.isPresent(slot)
  }
}

extension DerivationPlan.Path {
  /// The value derived from the last object of the path.
  func value(_ row: RowPointer?) -> StoreValue {
    guard let row, row.isPresent(source.slot) else { return .null }
    guard let function else { return row.value(source.slot, source.type) }
    return .string(function.apply(row.string(source.slot)))
  }
}
