/// Declarations are encoded without default values. The model embedded in a store stays small, and models encoded before a property existed
/// decode with its default.
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
