extension Error {
  /// The error. If it is an error of decoding or encoding, only its kind.
  ///
  /// The errors of decoders and encoders quote values, and their paths contain the keys of dictionaries. Use it for an error of another
  /// program's code that becomes the cause of a ``StoreError``, whose description is logged.
  package var withoutCodedValues: any Error {
    let error: any Error = self, omission = "Details are omitted, because they can contain values."
    let decoding = DecodingError.Context(codingPath: [], debugDescription: omission)
    switch error {
    case DecodingError.typeMismatch(let type, _): return DecodingError.typeMismatch(type, decoding)
    case DecodingError.valueNotFound(let type, _): return DecodingError.valueNotFound(type, decoding)
    case DecodingError.keyNotFound(let key, _): return DecodingError.keyNotFound(key, decoding)
    case is DecodingError: return DecodingError.dataCorrupted(decoding)
    case EncodingError.invalidValue(let value, _):
      return EncodingError.invalidValue(type(of: value), EncodingError.Context(codingPath: [], debugDescription: omission))
    default: return error
    }
  }
}
