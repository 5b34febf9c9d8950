import { useEffect, useState } from 'react';
import { isOperator } from '../gateway/operator';

/** Reports whether the gateway answers this user what is for operators; undefined: it has not answered yet. */
export function useOperator(): boolean | undefined {
  const [operator, setOperator] = useState<boolean>();
  useEffect(() => {
    let shown = true;
    void isOperator().then((is) => shown && setOperator(is));
    return () => {
      shown = false;
    };
  }, []);
  return operator;
}
