/// Declarations are coded without what has its default value: a store's embedded model stays small, and what was coded before a
/// property was added decodes with its default.
extension KeyedEncodingContainer {
  mutating func encode<Value: Encodable & Equatable>(_ value: Value, ifNot standard: Value, forKey key: Key) throws {
    if value != standard { try encode(value, forKey: key) }
  }
}

extension KeyedDecodingContainer {
  func decode<Value: Decodable>(_ key: Key, default standard: Value) throws -> Value {
    try decodeIfPresent(Value.self, forKey: key) ?? standard
  }
}
