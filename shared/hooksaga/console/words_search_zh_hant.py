"""Traditional Chinese catalogue: the search box, filters, exports, and rows that are chosen."""

SEARCH_WORDS: dict[str, str] = {
    "Id, key or attribute": "ID、金鑰或屬性",
    "Matches for {text}": "符合「{text}」的項目",
    "Match": "符合項目",
    "Time": "時間",
    "Delivery": "投遞",
    "Nothing matches {text}.": "沒有符合「{text}」的項目。",
    "There may be more matches. Search for more of the text.": "可能還有其他符合的項目，請輸入更完整的文字。",
    "Attribute": "屬性",
    "Correct the marked fields, then search again.": "請修正標示的欄位後再搜尋。",
    "Finds an event by its id, whole or shortened, its idempotency key or the value of an attribute, and a subscription, "
    "a delivery, an attempt or a dead letter by its number.": (
        "可用完整或縮短的 ID、冪等鍵或屬性值尋找事件，也可用編號尋找訂閱、投遞、嘗試或死信。"
    ),
    "Idempotency key": "冪等鍵",
    "waiting": "等待中",
    "dead": "有死信未重送",
    "Events with this state are searched within the last 24 hours.": "此狀態只搜尋最近 24 小時內的事件。",
    "No matching subscriptions.": "沒有符合條件的訂閱。",
    "No matching operations.": "沒有符合條件的作業。",
    "No match among the scanned dead letters. Older ones exist.": "已掃描的死信中沒有符合的；還有更舊的死信。",
    "Download all:": "下載全部：",
    "Choice": "選取",
    "Choose {id}": "選取 {id}",
    "Choose all on this page": "選取本頁全部",
    "Requeue the chosen ones": "重送選取的死信",
    "Resend the chosen ones": "重送選取的投遞",
    "All {chosen} were started.": "{chosen} 筆皆已開始重送。",
    "{started} of {chosen} were started. The others were started before, have not ended, or their subscription is "
    "inactive.": "{chosen} 筆中有 {started} 筆已開始重送。其餘先前已重送、尚未結束，或其訂閱已停用。",
}
